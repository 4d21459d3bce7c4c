#!/bin/sh
# Builds invoice.wasm, or what the argument names.
set -eu
cd "$(dirname "$0")"
node ../../sdk/js/build.mjs invoice.js -o "${1-invoice.wasm}"
