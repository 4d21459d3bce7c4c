package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSubmitFile: a large file is uploaded, a small one is not, and both come back.
func TestSubmitFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		size    int
		args    []string
		uploads int64
	}{
		{"small file", 64 << 10, []string{"--file", "in"}, 0},
		{"large file", 64<<10 + 1, []string{"--file", "in"}, 1},
		{"larger than a submit may be", 3 << 20, []string{"@in"}, 1},
		{"stdin", 3 << 20, []string{"-"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := newServer(t)
			con := newConsole(t, server)
			data := bytes.Repeat([]byte("a word "), c.size/7+1)[:c.size]
			if err := os.WriteFile(filepath.Join(con.env.dir, "in"), data, 0o600); err != nil {
				t.Fatal(err)
			}
			con.env.stdin = bytes.NewReader(data)
			if code := con.run(t, append([]string{"submit", "wordcount"}, c.args...)...); code != exitOK || server.uploads.Load() != c.uploads {
				t.Fatalf("exit code %d, %d uploads: %s", code, server.uploads.Load(), con.errOut.String())
			}
			if code := con.run(t, "job", "payload", "job-1", "-O", "out"); code != exitOK {
				t.Fatalf("exit code %d: %s", code, con.errOut.String())
			}
			if got, err := os.ReadFile(filepath.Join(con.env.dir, "out")); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes came back, %v", len(got), err)
			}
		})
	}
}

func TestSubmitFileTwice(t *testing.T) {
	t.Parallel()
	con := newConsole(t, newServer(t))
	if code := con.run(t, "submit", "wordcount", "text", "--file", "in"); code != exitUsage || !strings.Contains(con.errOut.String(), "given twice") {
		t.Errorf("exit code %d: %s", code, con.errOut.String())
	}
}

// TestJobResultStreams: results go to a file or a pipe as they are, and a file
// that was not written to its end is removed.
func TestJobResultStreams(t *testing.T) {
	t.Parallel()
	con := newConsole(t, newServer(t))
	if code := con.run(t, "submit", "wordcount", "binary", "--wait"); code != exitOK {
		t.Fatal(con.errOut.String())
	}
	con.out.Reset()
	for _, args := range [][]string{{"job", "result", "job-1"}, {"job", "payload", "job-1"}} {
		if code := con.run(t, args...); code != exitOK {
			t.Fatalf("%v: %s", args, con.errOut.String())
		}
	}
	if got := con.out.String(); got != "\x1b[H\xff\x00binary" {
		t.Errorf("got %q", got)
	}
	if code := con.run(t, "job", "result", "job-2", "-O", "out"); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(filepath.Join(con.env.dir, "out")); !os.IsNotExist(err) {
		t.Errorf("a file is there: %v", err)
	}
}
