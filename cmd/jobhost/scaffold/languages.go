package scaffold

import "slices"

// Language is one that projects are made in.
type Language struct {
	Name  string // as it is asked for, and the folder of its templates
	Title string // for people
	// Toolchain says what it takes to build a worker.
	Toolchain string
	// Install is the command that is run once in the project; "" = none.
	Install string
	// Source is the file to begin with.
	Source string
	// UnitTest is the command that tests the worker's parts; "" = there are only cases.
	UnitTest string
	// Native = the worker is a process rather than a module.
	Native bool
	// PinNote says of a native worker what its digest covers.
	PinNote string
	// Ignored are further entries of .gitignore.
	Ignored []string

	extension string   // of the plugin
	sdk       []source // the first one is its folder
}

// source is a part of an SDK that goes into a project.
type source struct {
	from string // a file or folder below plugins/sdk
	to   string // where it is in the project
}

// below is the whole of an SDK's folder, as it lies in the project.
func below(folder, to string) []source { return []source{{folder, to}} }

// Languages returns all of them, in the order in which they are shown.
func Languages() []Language {
	return []Language{
		{
			Name: "go", Title: "Go", Toolchain: "Go 1.26 or later", Source: "main.go", UnitTest: "go test .",
			extension: ".wasm", sdk: below("go", "sdk/plugins/sdk/go"),
		},
		{
			Name: "rust", Title: "Rust", Source: "src/lib.rs", UnitTest: "cargo test",
			Toolchain: "Rust 1.63 or later with a library for WASI (`rustup target add wasm32-wasip1`; Debian: `apt install rustc libstd-rust-dev-wasm32 lld-14`)",
			extension: ".wasm", sdk: below("rust", "sdk"), Ignored: []string{"/target/"},
		},
		{
			Name: "c", Title: "C", Toolchain: "clang 14 or later with its linker (Debian: `apt install clang lld`)", Source: "worker.c",
			extension: ".wasm", sdk: below("c", "sdk"),
		},
		{
			Name: "assemblyscript", Title: "AssemblyScript", Toolchain: "Node 20 or later", Install: "npm install", Source: "worker.ts",
			extension: ".wasm", sdk: below("assemblyscript", "sdk"), Ignored: []string{"/node_modules/"},
		},
		{
			Name: "zig", Title: "Zig", Toolchain: "Zig 0.16, from ziglang.org or by npm", Install: "npm install", Source: "worker.zig",
			UnitTest:  "./build.sh test",
			extension: ".wasm", sdk: below("zig", "sdk"), Ignored: []string{"/node_modules/", ".zig-cache/"},
		},
		{
			Name: "js", Title: "JavaScript", Toolchain: "Node 20 or later to build it", Install: "npm install", Source: "worker.js",
			extension: ".wasm", sdk: below("js", "sdk"), Ignored: []string{"/node_modules/"},
		},
		{
			Name: "python", Title: "Python, as a process", Source: "src/worker.py", Native: true,
			Toolchain: "Python 3.11 or later with grpcio, protobuf and cryptography (Debian: `apt install python3-grpcio python3-protobuf python3-cryptography`)",
			extension: ".pyz", sdk: []source{
				{"process/python/jobhost_worker", "src/jobhost_worker"}, {"process/python/README.md", "src/jobhost_worker/README.md"},
			},
			Ignored: []string{"__pycache__/"},
			PinNote: "It covers what is in `src`, but neither Python nor the modules that are installed beside it.",
		},
		{
			Name: "node", Title: "JavaScript, as a process of Node", Toolchain: "Node 20 or later", Install: "npm install", Source: "worker.js",
			extension: ".bundle.js", sdk: below("process/node", "sdk"), Native: true, Ignored: []string{"/node_modules/"},
			PinNote: "It covers whatever the worker imports, since that is bundled, but not Node.",
		},
	}
}

// Names returns the names of all languages.
func Names() []string {
	var names []string
	for _, l := range Languages() {
		names = append(names, l.Name)
	}
	return names
}

// Find returns the language of a name.
func Find(name string) (Language, bool) {
	all := Languages()
	if i := slices.IndexFunc(all, func(l Language) bool { return l.Name == name }); i >= 0 {
		return all[i], true
	}
	return Language{}, false
}
