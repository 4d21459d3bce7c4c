#!/bin/sh
# Builds jsonquery.wasm, or what the argument names.
set -eu
cd "$(dirname "$0")"
../../sdk/rust/build.sh "${1-jsonquery.wasm}" .
