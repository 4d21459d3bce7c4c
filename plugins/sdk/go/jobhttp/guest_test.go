package jobhttp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
)

// TestGuest runs net/http in a worker, in one instance for all parts.
func TestGuest(t *testing.T) {
	t.Parallel()
	g := guesttest.Start(t, guesttest.Build(t, "testdata/guest"))
	for _, part := range []struct {
		name string
		test func(*testing.T, *guesttest.Guest)
	}{
		{"post", testPost},
		{"no response", testNoResponse},
		{"many", testMany},
		{"hurry", testHurry},
		{"stopped", testStopped},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, g) })
	}
}

// call runs an entry and returns what the guest did.
func call(t *testing.T, g *guesttest.Guest, entry string, at guesttest.Attempt) *guesttest.Attempt {
	t.Helper()
	g.Attempt = &at
	if err := g.Call(entry); err != nil {
		t.Fatalf("%s: %v\n%s", entry, err, g.Stderr())
	}
	return g.Attempt
}

func testPost(t *testing.T, g *guesttest.Guest) {
	got := call(t, g, "jh_run", guesttest.Attempt{Input: []byte("http://ada:pw@a/b?c=d#e"), HTTP: func(string) guesttest.Reply {
		return guesttest.Reply{Text: "201\ncontent-type: text/plain\n\nthanks"}
	}})
	want := "POST http://a/b?c=d\nAuthorization: Basic YWRhOnB3\nContent-Type: application/x-www-form-urlencoded\n\na=b+c"
	if diff := cmp.Diff([]string{want}, got.Ops.Requests); diff != "" {
		t.Error(diff)
	}
	if want := "201 Created map[Content-Type:[text/plain]] 6 thanks"; string(got.Output) != want {
		t.Errorf("%q, %s", got.Output, got.Failure)
	}
}

func testNoResponse(t *testing.T, g *guesttest.Guest) {
	got := call(t, g, "jh_run", guesttest.Attempt{Input: []byte("http://a/b"), HTTP: func(string) guesttest.Reply {
		return guesttest.Reply{Text: "0\nerror: timeout\n\nno answer in time"}
	}})
	want := `{"message":"Post \"http://a/b\": POST http://a/b: no answer in time","code":"timeout","category":"timeout"}`
	if got.Failure != want {
		t.Error(got.Failure)
	}
}

// testMany: requests of goroutines overlap, as do those that follow them, and
// their sleeps.
func testMany(t *testing.T, g *guesttest.Guest) {
	for _, tt := range []struct {
		pages, most int
		longest     time.Duration
	}{{1, 1, 2500 * time.Millisecond}, {8, 8, 2500 * time.Millisecond}, {20, 8, 5500 * time.Millisecond}} {
		var pages, want []string
		for i := range tt.pages {
			pages = append(pages, fmt.Sprintf("http://a/%d", i))
			want = append(want, fmt.Sprintf("%d?%d", i, i))
		}
		got := call(t, g, "many", guesttest.Attempt{Input: []byte(strings.Join(pages, " ")), HTTP: func(request string) guesttest.Reply {
			line, _, _ := strings.Cut(request, "\n")
			return guesttest.Reply{Text: "200\n\n" + strings.TrimPrefix(line, "GET http://a/"), After: time.Second}
		}})
		texts, _, _ := strings.Cut(string(got.Output), " after ")
		if texts != strings.Join(want, " ") || got.Failure != "" {
			t.Errorf("%d pages: %q, %s", tt.pages, got.Output, got.Failure)
		}
		if o := got.Ops; o.MostOpen != tt.most || o.Elapsed > tt.longest || o.Waits > 300 || len(o.Dropped) > 0 {
			t.Errorf("%d pages: %d at once, in %v with %d waits", tt.pages, o.MostOpen, o.Elapsed, o.Waits)
		}
	}
}

// testHurry: contexts end while the host is asked for other requests.
func testHurry(t *testing.T, g *guesttest.Guest) {
	got := call(t, g, "hurry", guesttest.Attempt{Input: []byte("http://a"), HTTP: func(string) guesttest.Reply {
		return guesttest.Reply{Text: "200\n\n", After: 5 * time.Second}
	}})
	want := "timeout true after 1s;cancel false after 3s;other false after 5s;"
	if string(got.Output) != want || len(got.Ops.Dropped) != 2 {
		t.Errorf("%q, %s, %q", got.Output, got.Failure, got.Ops.Dropped)
	}
}

// testStopped: when the attempt is cancelled, all its requests end.
func testStopped(t *testing.T, g *guesttest.Guest) {
	got := call(t, g, "many", guesttest.Attempt{Input: []byte("http://a http://b"), Stopped: true, HTTP: func(string) guesttest.Reply {
		return guesttest.Reply{Never: true}
	}})
	if !strings.Contains(got.Failure, "cancelled or past the deadline") || len(got.Ops.Dropped) != 4 {
		t.Errorf("%s, %q", got.Failure, got.Ops.Dropped)
	}
	testPost(t, g) // nothing is left of the stopped attempt
}
