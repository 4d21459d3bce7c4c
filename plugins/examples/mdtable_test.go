package examples_test

import (
	"os"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/toolchain"
	"github.com/jobhost/jobhost/plugins/internal/guesttest"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

func TestMdtable(t *testing.T) {
	t.Parallel()
	t.Run("prebuilt", func(t *testing.T) { t.Parallel(); testMdtable(t, guesttest.Read(t, "mdtable/mdtable.wasm")) })
	t.Run("rebuilt", func(t *testing.T) { t.Parallel(); testMdtable(t, rebuilt(t, "mdtable", "../sdk/zig", "zig")) })
	t.Run("native", func(t *testing.T) {
		t.Parallel()
		zig := toolchain.Need(t, "zig")
		toolchain.Build(t, "mdtable", toolchain.Env(), zig, "test", "--dep", "jobhost", "-Mroot=mdtable.zig", "-Mjobhost=../../sdk/zig/src/jobhost.zig")
	})
}

func testMdtable(t *testing.T, module []byte) {
	worker := sdktest.Open(t, module)
	planets, err := os.ReadFile("csvstats/planets.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(worker.Call(t, "", string(planets)), "\n")
	want := []string{
		"| planet  | radius_km | year_days | distance_au | discovered |",
		"| ------- | --------: | --------: | ----------: | ---------: |",
		"| Mercury |    2439.7 |     87.97 |       0.387 |            |",
	}
	if len(lines) != 10 || strings.Join(lines[:3], "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
	large := "n,text\n" + strings.Repeat("1,\"two\nlines\"\n", 20_000)
	if got := worker.Call(t, "", large); strings.Count(got, "two<br>lines") != 20_000 {
		t.Errorf("%d bytes of a large table: %.200s", len(got), got)
	}
	if f := worker.Fail(t, "", "a,b\n1\n"); f.Retryable || f.Code != "bad_csv" || f.Message != "line 2: 1 fields instead of 2" {
		t.Errorf("%+v", f)
	}
}
