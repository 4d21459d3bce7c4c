#!/bin/sh
# Builds vowels.wasm, which is checked in so that tests need no C compiler.
set -eu
cd "$(dirname "$0")"
../../sdk/c/build.sh "${1-vowels.wasm}" vowels.c
