#!/bin/sh
# Builds conform.wasm.
cd "$(dirname "$0")" && exec ../build.sh . conform.wasm
