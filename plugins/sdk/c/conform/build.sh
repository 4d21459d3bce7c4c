#!/bin/sh
# Builds testdata/conform.wasm, which is checked in so that tests need no C
# compiler, or what the argument names.
set -eu
cd "$(dirname "$0")"
out=${1-}
../build.sh "${out:-../testdata/conform.wasm}" conform.c
if [ -z "$out" ]; then
	clang --version | head -n 1 >../testdata/TOOLCHAIN
fi
