package test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
)

// A host that can't run says exactly why, and exits with 1.
func TestHostThatCannotStart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(t *testing.T, s *site)
		want   []string
	}{
		{
			"not a module",
			func(_ *testing.T, s *site) { s.write("outcomes.wasm", []byte("#!/bin/sh\necho hi\n")) },
			[]string{"worker echo", "outcomes.wasm is a script", "hint:"},
		},
		{
			"no such file",
			func(t *testing.T, s *site) {
				if err := os.Remove(filepath.Join(s.dir, "outcomes.wasm")); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"manifest.toml:", "outcomes.wasm", "does not exist"},
		},
		{
			"no such export",
			func(_ *testing.T, s *site) { s.replace(`entry = "spin"`, `entry = "spinn"`) },
			[]string{"spin", "spinn", "export"},
		},
		{
			"unknown setting",
			func(_ *testing.T, s *site) { s.replace("pool_size = 4", "pool_siz = 4") },
			[]string{"manifest.toml:", "pool_siz", "did you mean pool_size?"},
		},
		{
			"absurd value",
			func(_ *testing.T, s *site) { s.replace("pool_size = 4", "pool_size = -4") },
			[]string{"manifest.toml:", "pool_size"},
		},
		{
			"several faults at once",
			func(_ *testing.T, s *site) {
				s.replace("pool_size = 4", `timeout = "5"`)
				s.replace("pool_size = 2", `memory = "64"`)
			},
			[]string{"timeout", "memory"},
		},
		{
			"folder that can't be written",
			func(_ *testing.T, s *site) {
				s.write("file", nil)
				s.replace("[host]", "[host]\nstore = \"sqlite:./file/data\"")
			},
			[]string{"file"},
		},
		{
			"file that is no database",
			func(t *testing.T, s *site) {
				if err := os.Mkdir(filepath.Join(s.dir, "data"), 0o700); err != nil {
					t.Fatal(err)
				}
				s.write("data/jobhost.db", []byte(strings.Repeat("no database ", 1000)))
			},
			[]string{"jobhost.db"},
		},
		{
			"address that is taken",
			func(t *testing.T, s *site) { newSiteAt(t, s.addr).start() },
			[]string{"listen", "address already in use"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			tt.change(t, s)
			text, code := s.runToEnd()
			if code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("the error does not say %q:\n%s", want, text)
				}
			}
			if strings.Contains(text, "goroutine ") {
				t.Errorf("a stack trace is shown:\n%s", text)
			}
		})
	}
}

// Invalid input is refused with a code, a message and a hint, and leaves
// nothing behind.
func TestRefusedSubmits(t *testing.T) {
	t.Parallel()
	host := newSite(t).start()
	tests := []struct {
		name string
		spec jobhost.Spec
		code jobhost.Code
	}{
		{"unknown worker", jobhost.Spec{Worker: "ech"}, jobhost.CodeNotFound},
		{"bad worker name", jobhost.Spec{Worker: "../echo"}, jobhost.CodeInvalid},
		{"bad id", jobhost.Spec{Worker: "echo", ID: "../../x"}, jobhost.CodeInvalid},
		{"payload", jobhost.Spec{Worker: "echo", Payload: make([]byte, 1<<20+1)}, jobhost.CodeTooLarge},
		{"timeout", jobhost.Spec{Worker: "echo", Timeout: -1}, jobhost.CodeInvalid},
		{"tasks", jobhost.Spec{Worker: "echo", Tasks: 1 << 30}, jobhost.CodeInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := host.Submit(t.Context(), tt.spec)
			e, ok := errors.AsType[*jobhost.Error](err)
			if !ok || e.Code != tt.code || e.Message == "" {
				t.Errorf("error %v (code %s), want code %s", err, jobhost.CodeOf(err), tt.code)
			}
		})
	}
	page, err := host.Jobs(t.Context(), jobhost.Filter{})
	if err != nil || len(page.Jobs) != 0 {
		t.Errorf("refused submits left %d jobs, %v", len(page.Jobs), err)
	}
}

func TestWrongToken(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	site.start()
	for _, token := range []string{"", "wrong", strings.Repeat("x", 64)} {
		_, err := client.New("http://"+site.addr, token).Submit(t.Context(), jobhost.Spec{Worker: "echo"})
		if jobhost.CodeOf(err) != jobhost.CodeDenied {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

func TestForeignHostHeader(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	site.start()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+site.addr+"/v1/jobs", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "evil.example"
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 4 {
		t.Errorf("a request for another host is answered with %s", resp.Status)
	}
}
