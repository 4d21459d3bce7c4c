package host_test

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestSubmitInDatabase: a job that is submitted by a statement runs once its transaction has committed, once however
// often it is submitted; one without a worker is refused with the reason, which the log has too, and one without room
// waits for it.
func TestSubmitInDatabase(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	var log safeBuffer
	h := hosttest.OpenOn(t, func(t testing.TB, cfg *host.Config) { onSchema(t, cfg, schema) }, func(cfg *host.Config) {
		cfg.Workers[0].QueueCapacity = 1
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	submit := func(worker, payload, options string) string {
		return "SELECT " + schema + ".submit('" + worker + "', '" + payload + "', '" + options + "')"
	}
	server.Exec(t, "BEGIN", submit("test", "undone", `{"id": "undone", "entry": "echo"}`), "ROLLBACK")
	server.Exec(t, submit("test", "hello", `{"id": "mine", "entry": "echo"}`))
	wantResult(t, h, "mine", "hello")
	server.Exec(t, submit("test", "hello", `{"id": "mine", "entry": "echo"}`), submit("nosuch", "x", `{"id": "lost"}`), submit("test", "x", `{"bogus": 1, "id": "odd"}`))
	eventually(t, "an empty inbox", func() bool { return len(server.Query(t, "SELECT n FROM "+schema+".inbox")) == 0 })
	reasons := map[string]string{}
	for _, row := range server.Query(t, "SELECT id, reason FROM "+schema+".refused") {
		reasons[row[0]] = row[1]
	}
	if len(reasons) != 2 || !strings.Contains(reasons["lost"], `there is no worker "nosuch"`) || !strings.Contains(reasons["odd"], "bogus") {
		t.Errorf("refused: %v", reasons)
	}
	for id, reason := range map[string]string{"lost": `worker=nosuch.*there is no worker`, "odd": "bogus"} {
		line := regexp.MustCompile(`level=WARN msg="a job that was submitted within the database is refused" job=` + id + " .*" + reason)
		eventually(t, "a line about "+id, func() bool { return line.MatchString(log.String()) })
	}
	if page, err := h.Jobs(t.Context(), jobhost.Filter{}); err != nil || len(page.Jobs) != 1 {
		t.Errorf("got %+v, %v; want one job", page.Jobs, err)
	}

	var statements []string
	for _, id := range []string{"a", "b", "c", "d"} {
		statements = append(statements, submit("test", id, `{"id": "`+id+`", "entry": "echo"}`))
	}
	server.Exec(t, statements...)
	for _, id := range []string{"a", "b", "c", "d"} {
		wantResult(t, h, id, id)
	}
}

func wantResult(t *testing.T, h *hosttest.Host, id, want string) {
	t.Helper()
	eventually(t, "the end of "+id, func() bool {
		got, err := h.Result(t.Context(), id, 0)
		return err == nil && string(got.Data) == want
	})
}

// TestSubmitBehindFullQueue: jobs for a worker that takes none wait, however many they are. They don't hold up those of another
// program that come after them.
func TestSubmitBehindFullQueue(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	h := hosttest.OpenOn(t, func(t testing.TB, cfg *host.Config) { onSchema(t, cfg, schema) }, func(cfg *host.Config) {
		cfg.Workers = append(cfg.Workers, hosttest.Worker("other", guests.Outcomes))
	})
	if _, err := h.DrainWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	const many = 2500
	server.Exec(t, fmt.Sprintf("SELECT count(%s.submit('test', 'x')) FROM generate_series(1, %d)", schema, many),
		"SELECT "+schema+`.submit('other', 'hello', '{"id": "behind", "entry": "echo"}')`)
	wantResult(t, h, "behind", "hello")
	if n := len(server.Query(t, "SELECT n FROM "+schema+".inbox")); n != many {
		t.Errorf("%d jobs wait, want %d", n, many)
	}
	if _, err := h.ResumeWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an empty inbox", func() bool { return len(server.Query(t, "SELECT n FROM "+schema+".inbox")) == 0 })
}
