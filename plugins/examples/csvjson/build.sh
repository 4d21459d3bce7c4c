#!/bin/sh
# Builds csvjson.wasm, or what the argument names.
set -eu
cd "$(dirname "$0")"
../../sdk/assemblyscript/build.sh "${1-csvjson.wasm}" .
