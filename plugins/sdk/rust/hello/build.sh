#!/bin/sh
# Builds hello.wasm, or what the argument names.
set -eu
cd "$(dirname "$0")"
../build.sh "${1-hello.wasm}" .
