// Package version says which version of jobhost this is.
package version

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// stamp is set by the Makefile: -ldflags "-X …/internal/version.stamp=v1.2.3".
// Nothing else writes it.
var stamp string

// Info describes a build.
type Info struct {
	// Version is the stamp of the Makefile, otherwise the version of the
	// module, otherwise "devel".
	Version string
	// Revision is the commit it was built from, with "-dirty" when files were
	// changed; empty when the build doesn't know.
	Revision string
	// Go is the version of the toolchain.
	Go string
}

// Get returns the available information about the running program.
func Get() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	return describe(stamp, build)
}

func describe(stamp string, build *debug.BuildInfo) Info {
	info := Info{Version: stamp, Go: cmp.Or(build.GoVersion, runtime.Version())}
	if main := build.Main.Version; info.Version == "" && main != "(devel)" {
		info.Version = main
	}
	info.Version = cmp.Or(info.Version, "devel")
	dirty := ""
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision":
			info.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if info.Revision != "" {
		info.Revision += dirty
	}
	return info
}

// String returns the version, the first twelve digits of the revision and the
// toolchain, in one line.
func (i Info) String() string {
	s := "jobhost " + i.Version
	if i.Revision != "" {
		s += " (" + i.Revision[:min(len(i.Revision), 12)] + ")"
	}
	return s + " " + i.Go
}
