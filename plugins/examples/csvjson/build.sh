#!/bin/sh
# Builds csvjson.wasm.
cd "$(dirname "$0")" && exec ../../sdk/assemblyscript/build.sh . csvjson.wasm
