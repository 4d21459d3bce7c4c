#!/bin/sh
# Builds hello.wasm, or what the argument names.
set -eu
cd "$(dirname "$0")"
node ../build.mjs hello.js -o "${1-hello.wasm}"
