// Package sdk holds the sources of the SDKs, which `jobhost worker new` puts into
// projects, so that they are built without anything having to be fetched.
package sdk

import "embed"

// Files are the SDKs, each in its folder, without workers that test or show them, and the license that they come under.
//
//go:embed LICENSE
//go:embed go/*.go go/README.md go/jobhttp/*.go go/joblog/*.go
//go:embed c/build.sh c/README.md c/jobhost
//go:embed zig/build.sh zig/README.md zig/src
//go:embed rust/Cargo.toml rust/build.sh rust/README.md rust/src
//go:embed assemblyscript/build.sh assemblyscript/README.md assemblyscript/package.json assemblyscript/asconfig.json
//go:embed assemblyscript/index.ts assemblyscript/assembly
//go:embed js/build.mjs js/README.md js/package.json js/index.d.ts js/lib js/src
//go:embed process/python/README.md process/python/jobhost_worker/*.py
//go:embed process/node/README.md process/node/package.json process/node/index.js process/node/index.d.ts process/node/lib
var Files embed.FS
