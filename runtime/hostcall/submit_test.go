package hostcall_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

func TestSubmit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		when       hostcall.SubmitTime
		want       hostcall.Errno
		log        string
	}{
		{"with success", "worker: w\n\nx", 0, 1, ""},
		{"now", "worker: w", 1, 1, ""},
		{"at no time", "worker: w", 2, hostcall.ErrInvalid, "with success, 0, or now, 1"},
		{"to a worker without grant", "worker: other", 0, hostcall.ErrDenied, "may not submit jobs to other"},
		{"to none", "", 0, hostcall.ErrDenied, "may not submit"},
		{"no option", "worker: w\nprio: high\n", 0, hostcall.ErrInvalid, "prio is not an option"},
		{"a value out of range", "worker: w\ntasks: 20000", 0, hostcall.ErrInvalid, "tasks 20000"},
		{"a taken id", "worker: w\nid: taken", 0, hostcall.ErrConflict, "exists with other content"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			at := &hostcall.Attempt{
				Services: able{}, MaySubmit: []string{"w"}, Limits: hostcall.Limits{LogBytes: 1 << 10, LineBytes: 1 << 10},
			}
			n, e := at.Submit([]byte(tt.text), tt.when)
			if max(n, int32(e)) != int32(tt.want) && n+int32(e) != int32(tt.want) {
				t.Errorf("number %d, errno %d; want %d", n, e, tt.want)
			}
			lines, _ := at.TakeLog()
			if !strings.Contains(string(lines), tt.log) || tt.log == "" && len(lines) > 0 {
				t.Errorf("logged %q", lines)
			}
		})
	}
}

// TestChildIDs: a guest learns the ids of the jobs that it submitted.
func TestChildIDs(t *testing.T) {
	t.Parallel()
	at := &hostcall.Attempt{Services: able{}, MaySubmit: []string{"w"}}
	for i := range 3 {
		if n, e := at.Submit(fmt.Appendf(nil, "worker: w\n\njob %d", i+1), 0); n != int32(i+1) || e != hostcall.OK {
			t.Fatalf("number %d, errno %d", n, e)
		}
	}
	for key, want := range map[string]string{
		"child.1": "id of job 1", "child.3": "id of job 3", "child.0": "", "child.4": "", "child.x": "", "child.-1": "", "child.": "",
	} {
		got, e := at.Info(key)
		if got != want || (e == hostcall.OK) != (want != "") {
			t.Errorf("%s is %q, errno %d", key, got, e)
		}
	}
}

func TestParseSpec(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       jobhost.Spec
		bad        string // field of the error
	}{
		{"nothing", "", jobhost.Spec{}, ""},
		{"everything", "worker: w\nid:a\ncontent_type: text/plain\nentry: run\npriority: high\ndelay: 5s\ntasks: 3\nmax_attempts: 2\n" +
			"timeout: 1m\nlabel.a: b c \nlabel.b:\n\npayload\n\nmore", jobhost.Spec{
			Worker: "w", ID: "a", ContentType: "text/plain", Entry: "run", Priority: jobhost.High, Delay: 5 * time.Second, Tasks: 3,
			MaxAttempts: 2, Timeout: time.Minute, Labels: map[string]string{"a": "b c", "b": ""}, Payload: []byte("payload\n\nmore"),
		}, ""},
		{"no payload", "worker: w", jobhost.Spec{Worker: "w"}, ""},
		{"payload only", "\n\xff\x00", jobhost.Spec{Payload: []byte("\xff\x00")}, ""},
		{"an empty payload", "worker: w\n\n", jobhost.Spec{Worker: "w", Payload: []byte{}}, ""},
		{"a time", "run_at: 2030-01-02T03:04:05Z", jobhost.Spec{RunAt: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}, ""},
		{"twice", "id: a\nid: b", jobhost.Spec{ID: "a"}, "id"},
		{"no duration", "delay: 5", jobhost.Spec{}, "delay"},
		{"no number", "tasks: many", jobhost.Spec{}, "tasks"},
		{"no priority", "priority: urgent", jobhost.Spec{}, "priority"},
		{"no time", "run_at: tomorrow", jobhost.Spec{}, "run_at"},
		{"a hostile name", "\x1b[31m: x", jobhost.Spec{}, `\x1b[31m`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := hostcall.ParseSpec([]byte(tt.text))
			var field string
			if e, ok := err.(*jobhost.Error); ok { //nolint:errorlint // that is what it must be
				field = e.Field
			}
			if field != tt.bad || (err == nil) != (tt.bad == "") {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" && err == nil {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, bad := range []string{"no colon", "worker: \xff", "worker: " + strings.Repeat("x", 64<<10), "worker: w\r\n\r\n"} {
		if spec, err := hostcall.ParseSpec([]byte(bad)); jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Errorf("%.20q is %+v, %v", bad, spec, err)
		}
	}
}

func FuzzParseSpec(f *testing.F) {
	f.Add([]byte("worker: w\nlabel.a: b\ndelay: 5s\n\npayload"))
	f.Add([]byte("\n"))
	f.Add([]byte("id:\nid:\n"))
	f.Add([]byte("run_at: 2030-01-02T03:04:05+99:99\n\xff: \n\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		spec, err := hostcall.ParseSpec(text)
		if err != nil {
			if e, ok := err.(*jobhost.Error); !ok || e.Message == "" { //nolint:errorlint // that is what it must be
				t.Fatalf("got %v", err)
			}
			return
		}
		if !strings.HasSuffix(string(text), string(spec.Payload)) {
			t.Fatalf("%q has payload %q", text, spec.Payload)
		}
	})
}
