package manifest_test

import (
	"errors"
	"fmt"

	"github.com/jobhost/jobhost/host/manifest"
)

// Everything that is wrong is reported at once, each fault with its place.
func ExampleParse() {
	text := `[host]
listen = "0.0.0.0:7070"

[worker.wordcount]
timeot = "5s"
memory = "64"
`
	_, err := manifest.Parse("manifest.toml", []byte(text), ".")
	faults, _ := errors.AsType[manifest.Faults](err)
	for _, fault := range faults {
		fmt.Println(fault)
	}
	// Output:
	// manifest.toml:2:10: host.listen: "0.0.0.0:7070" can be reached from other machines, and there is no TLS; listen on "127.0.0.1:7070", or put a proxy in front that does TLS and set behind_proxy = true
	// manifest.toml:4:1: worker.wordcount: plugin is missing
	// manifest.toml:5:1: worker.wordcount: timeot is not a setting; did you mean timeout?
	// manifest.toml:6:10: worker.wordcount.memory: "64" is not a size; write a whole number with a unit, such as "512KiB", "64MiB" or "1GB"
}
