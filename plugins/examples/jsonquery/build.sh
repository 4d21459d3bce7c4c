#!/bin/sh
# Builds jsonquery.wasm.
cd "$(dirname "$0")" && exec ../../sdk/rust/build.sh . jsonquery.wasm
