#!/bin/sh
# Builds testdata/conform.wasm, which is checked in so that tests need no Zig, or
# what the argument names.
set -eu
cd "$(dirname "$0")"
out=${1-}
../build.sh "${out:-../testdata/conform.wasm}" conform.zig
if [ -z "$out" ]; then
	zig version >../testdata/TOOLCHAIN
fi
