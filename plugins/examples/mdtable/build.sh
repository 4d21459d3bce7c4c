#!/bin/sh
# Builds mdtable.wasm, which is checked in so that tests need no Zig.
set -eu
cd "$(dirname "$0")"
../../sdk/zig/build.sh "${1-mdtable.wasm}" mdtable.zig
