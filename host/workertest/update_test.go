package workertest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/jobhost/jobhost/host/workertest"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// TestUpdate: outputs are written where they are missing or differ, and fit after
// that; what else is wrong stays so.
func TestUpdate(t *testing.T) {
	t.Parallel()
	archive := txtar.Parse([]byte(`
-- json/input --
{"b":1,
"a":[]}
-- text/case.toml --
input = "a\nb"
-- text/output.txt --
a

-- exact/case.toml --
input = "same"
-- exact/output --
other
-- same/case.toml --
input = '{"a": 1}'
-- same/output.json --
{
"a": 1.0}
-- ignored/case.toml --
input = '{"a": 1, "at": 3}'
expect.ignore = ["at"]
-- lines.in --
{"b":1,"a":2}
{}
-- lines.out.jsonl --
-- binary/case.toml --
input = "\u0000"
-- empty/input --
-- failing/case.toml --
entry = "fail_permanent"
input = "no"
-- inline/case.toml --
input = "a"
expect.output = "b"
-- differing/case.toml --
input = "new"
expect.kv.a = "1"
-- no-json/case.toml --
input = "new"
-- no-json/output.json --
{}
`))
	dir := unpack(t, archive)
	r := &workertest.Runner{Engine: newEngine(t), Parallel: 2, Update: true}
	r.Worker, r.Free = workerOf(t, dir, guests.Outcomes)
	r.Worker.Entry = "echo"
	report(t, r, dir)
	got := map[string]string{}
	for _, name := range []string{
		"json/output.json", "text/output.txt", "exact/output", "same/output.json", "ignored/output.json", "lines.out.jsonl",
		"binary/output", "empty/output", "failing/output", "inline/output", "differing/output.txt", "no-json/output.json",
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			data = []byte("none")
		}
		got[name] = string(data)
	}
	want := map[string]string{
		"json/output.json": "{\n  \"b\": 1,\n  \"a\": []\n}\n", "text/output.txt": "a\nb\n", "exact/output": "same", "same/output.json": "{\n\"a\": 1.0}\n",
		"ignored/output.json": "{\n  \"a\": 1\n}\n", "lines.out.jsonl": "{\"b\":1,\"a\":2}\n{}\n", "binary/output": "\x00",
		"empty/output": "none", "failing/output": "none", "inline/output": "none", "differing/output.txt": "new\n", "no-json/output.json": "{}\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	r.Update = false
	if diff := cmp.Diff(afterUpdate, report(t, r, dir)); diff != "" {
		t.Error(diff)
	}
}

const afterUpdate = `ok binary
failed differing
  kv a
    want "1"
    got  no such key
ok empty
ok exact
failed failing
  outcome
    want success
    got  a failure: failed: no (unknown, permanent)
ok ignored
failed inline
  output
    want "b"
    got  "a"
ok json
ok lines
failed no-json
  output
    want "{}\n"
    got  "new" (this is not JSON: invalid character 'e' in literal null (expecting 'u'))
ok same
ok text
`
