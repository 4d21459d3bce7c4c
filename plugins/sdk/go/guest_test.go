package jobhost_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
)

// TestGuest runs a guest that was built with the SDK. Its parts share one
// instance, since building a Go guest takes a second or more.
func TestGuest(t *testing.T) {
	t.Parallel()
	g := guesttest.Start(t, guesttest.Build(t, "testdata/guest"))
	for _, part := range []struct {
		name string
		test func(*testing.T, *guesttest.Guest)
	}{
		{"echo", testEcho},
		{"info", testInfo},
		{"failures", testFailures},
		{"calls", testCalls},
		{"refused calls", testRefused},
		{"fetch", testFetch},
		{"fetch all", testFetchAll},
		{"race", testRace},
		{"waits", testWaits},
		{"stale", testStale},
		{"defer", testDefer},
		{"reports", testReports},
		{"follows", testFollows},
		{"meets", testMeets},
		{"fiber", testFiber},
		{"memory", testMemory},
		{"reset", testReset},
		{"panic", testPanic}, // the last one: the instance is gone
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, g) })
	}
}

func testEcho(t *testing.T, g *guesttest.Guest) {
	for _, size := range []int{0, 1, 64 << 10, 64<<10 + 1, 1 << 20, 3} {
		input := bytes.Repeat([]byte{'x'}, size)
		if got := g.Run(input); !bytes.Equal(got.Output, input) || got.Kind != 0 {
			t.Errorf("%d bytes became %d, kind %d", size, len(got.Output), got.Kind)
		}
	}
}

func testInfo(t *testing.T, g *guesttest.Guest) {
	g.Attempt = &guesttest.Attempt{Info: map[string]string{
		"job.id": "j1", "job.task": "2", "job.tasks": "3", "job.attempt": "4", "job.priority": "high",
		"worker": "w", "trace": "00-ab", "config.city": strings.Repeat("c", 1000), "label.team": "red", "secret.key": "s3",
	}}
	if err := g.Call("about"); err != nil {
		t.Fatal(err)
	}
	want := "j1 2/3 4 high w 00-ab|1000 false red s3 <nil>|read secret other: not found"
	if diff := cmp.Diff(want, string(g.Attempt.Output)); diff != "" {
		t.Error(diff)
	}
}

func testFailures(t *testing.T, g *guesttest.Guest) {
	const details = `,"code":"lost","category":"network","severity":"warning","context":{"line":"7","peer":"b"}}`
	const lost = `connection \"lost\"\u0000` + "\uFFFD" + `"`
	for _, c := range []struct {
		name, want string
		kind       int32
	}{
		{"plain", `{"message":"` + lost + `}`, 1},
		{"permanent", `{"message":"` + lost + `}`, 2},
		{"wrapped", `{"message":"fetch: ` + lost + details, 2},
		{"retry", `{"message":"` + lost + details, 1},
		{"snooze", `{"after_ms":2}`, 3},
	} {
		g.Attempt = &guesttest.Attempt{Input: []byte(c.name)}
		if err := g.Call("fails"); err != nil {
			t.Fatal(err)
		}
		if got := g.Attempt; got.Kind != c.kind || got.Failure != c.want || len(got.Output) != 0 {
			t.Errorf("%s: kind %d, %s, output %q\nwant %s", c.name, got.Kind, got.Failure, got.Output, c.want)
		}
	}
}

func testCalls(t *testing.T, g *guesttest.Guest) {
	g.Attempt = &guesttest.Attempt{Left: 1500}
	if err := g.Call("calls"); err != nil {
		t.Fatal(err)
	}
	want := &guesttest.Attempt{
		Left:     1500,
		Output:   []byte("left 1.5s;end"),
		Emitted:  []string{"now", ""},
		Progress: []string{"1/2"},
		Logs:     []string{"-4 text", `0 two words n=1 s="a b"`, "4 grouped a=1 g.b=2", "9 louder", "0 from log"},
		Metrics:  []string{`1 hits{path="a\"b\\c\n",code="200"}`, "2 level", "3 size"},
		Observed: []string{"0 1", "0 2", "1 -0.5", "2 1e+06"},
	}
	if diff := cmp.Diff(want, g.Attempt, cmpopts.IgnoreUnexported(guesttest.Ops{})); diff != "" {
		t.Error(diff)
	}
	for left, want := range map[int64]string{-1: "left 2562047h47m16.854775807s", -3: "left 0s"} {
		g.Attempt = &guesttest.Attempt{Left: left}
		if err := g.Call("calls"); err != nil || !strings.HasPrefix(string(g.Attempt.Output), want) {
			t.Errorf("remaining %d: %s, %v", left, g.Attempt.Output, err)
		}
	}
}

func testRefused(t *testing.T, g *guesttest.Guest) {
	g.Attempt = &guesttest.Attempt{Errno: -4}
	if err := g.Call("calls"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"define metric: over the limit", "emit: over the limit", "write the result: over the limit",
	} {
		if !strings.Contains(g.Attempt.Failure, want) {
			t.Errorf("%s doesn't say %q", g.Attempt.Failure, want)
		}
	}
}

// testMemory: the collector runs several times in these jobs; it must not free
// what the host still reads, nor may memory grow from job to job.
func testMemory(t *testing.T, g *guesttest.Guest) {
	g.Run(bytes.Repeat([]byte("x"), 1<<20))
	grew, size := g.Grew, g.MemorySize()
	for i := range 20 {
		input := bytes.Repeat([]byte{byte(i)}, 100_000)
		g.Attempt = &guesttest.Attempt{Input: input}
		if err := g.Call("garbage"); err != nil {
			t.Fatalf("job %d: %v\n%s", i, err, g.Stderr())
		}
		if !bytes.Equal(g.Attempt.Output, input) {
			t.Fatalf("job %d: the result was overwritten", i)
		}
	}
	// 20 MiB were allocated on the way.
	if more := g.MemorySize() - size; g.Grew != grew || more > 12<<20 {
		t.Errorf("jh_buf was called %d times, and the memory grew by %d", g.Grew-grew, more)
	}
}

// testReset checks what is documented for random numbers, and that it is needed.
func testReset(t *testing.T, g *guesttest.Guest) {
	var draws [2][]string
	for i := range draws {
		g.Reset()
		g.Attempt = &guesttest.Attempt{}
		if err := g.Call("luck"); err != nil {
			t.Fatal(err)
		}
		draws[i] = strings.Fields(string(g.Attempt.Output))
	}
	if draws[0][0] == draws[1][0] {
		t.Errorf("Job.Rand drew %s in both jobs", draws[0][0])
	}
	if draws[0][3] == draws[1][3] {
		t.Errorf("crypto/rand drew %s in both jobs", draws[0][3])
	}
	if draws[0][1] != draws[1][1] {
		t.Error("rand.Uint64 differs between jobs: what rand.go says of it is no longer so")
	}
	if draws[0][2] != "1" || draws[1][2] != "1" {
		t.Errorf("OnWake ran %s and %s times", draws[0][2], draws[1][2])
	}
	if got := g.Run([]byte("still here")); string(got.Output) != "still here" {
		t.Errorf("after the reset: %q", got.Output)
	}
}

func testPanic(t *testing.T, g *guesttest.Guest) {
	g.Attempt = &guesttest.Attempt{Input: []byte("none of them")}
	if err := g.Call("fails"); err == nil {
		t.Error("a panic is no trap: the host would keep the sandbox")
	}
	want := `{"message":"panic: runtime error: index out of range [12] with length 0","code":"panic","category":"system","severity":"critical"}`
	if got := g.Attempt; got.Kind != 1 || got.Failure != want {
		t.Errorf("kind %d, %s", got.Kind, got.Failure)
	}
	if text := g.Stderr(); !strings.Contains(text, "main.fails.func1") {
		t.Errorf("standard error has no stack: %s", text)
	}
}
