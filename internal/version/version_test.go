package version

import (
	"runtime/debug"
	"testing"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: modified}}
	}
	for _, tc := range []struct {
		name  string
		stamp string
		build debug.BuildInfo
		want  string
	}{
		{"nothing known", "", debug.BuildInfo{GoVersion: "go1.26"}, "jobhost devel go1.26"},
		{"devel", "", debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "(devel)"}}, "jobhost devel go1.26"},
		{"installed", "", debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "v1.2.3"}}, "jobhost v1.2.3 go1.26"},
		{"stamped", "v2.0.0", debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "v1.2.3"}}, "jobhost v2.0.0 go1.26"},
		{"revision", "", debug.BuildInfo{GoVersion: "go1.26", Settings: vcs("false")}, "jobhost devel (0123456789ab) go1.26"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := describe(tc.stamp, &tc.build).String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	dirty := describe("", &debug.BuildInfo{Settings: vcs("true")})
	if want := "0123456789abcdef-dirty"; dirty.Revision != want {
		t.Errorf("revision %q, want %q", dirty.Revision, want)
	}
	if Get().Go == "" {
		t.Error("no toolchain")
	}
}
