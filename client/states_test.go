package client_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
)

// tell answers with states, each a task's with its status as "task=status", "c" for
// the sentinel; what follows a "@" is the cursor. Then it hangs up.
func tell(t *testing.T, last string, events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Last-Event-ID"); got != last {
			t.Errorf("got Last-Event-ID %q, want %q", got, last)
		}
		if want := "/v1/states/j/watch?run=r&tag=a"; r.URL.String() != want {
			t.Errorf("got %s, want %s", r.URL, want)
		}
		for _, e := range events {
			what, cursor, _ := strings.Cut(e, "@")
			if cursor != "" {
				fmt.Fprintf(w, "id: %s\n", cursor)
			}
			data := `"sentinel":true,"replay":true`
			if task, status, ok := strings.Cut(what, "="); ok {
				data = fmt.Sprintf(`"state":{"task":%s,"status":%s},"replay":%t`, task, status, cursor == "")
			}
			fmt.Fprintf(w, "event: state\ndata: {%s,\"cursor\":%q}\n\n", data, cursor)
		}
	}
}

func refuse(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "starting", http.StatusServiceUnavailable)
}

// TestStatesGoOn wants a stream to go on at the last event with a cursor, and no
// event of a replay to be taken for one.
func TestStatesGoOn(t *testing.T) {
	t.Parallel()
	c := script(t,
		tell(t, "", "0=1", "1=1", "c@x-2", "0=2@x-3"),
		refuse,
		tell(t, "x-3", "1=5"), // broken off within the replay
		tell(t, "x-3", "1=5", "c@x-4"),
		func(w http.ResponseWriter, r *http.Request) {
			tell(t, "x-4", "1=6@x-5")(w, r)
			fmt.Fprint(w, "event: end\ndata: {\"detail\":\"they were deleted\",\"code\":\"not_found\"}\n\n")
		},
	)
	var got []string
	var end error
	for e, err := range c.WatchStates(t.Context(), jobhost.StateQuery{Job: "j", Run: "r", Tag: "a"}) {
		if end = err; err != nil {
			break
		}
		got = append(got, fmt.Sprintf("%d=%d", e.State.TaskID, e.State.Status)+map[bool]string{true: "r"}[e.Replay]+map[bool]string{true: "c"}[e.Sentinel])
	}
	if want := "0=1r 1=1r 0=0rc 0=2 1=5r 1=5r 0=0rc 1=6"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	wantCode(t, end, jobhost.CodeNotFound, "deleted")
}

// TestStatesEnd wants a stream that breaks off before there is anything to go on
// from to say so: what was told of the replay would be told again.
func TestStatesEnd(t *testing.T) {
	t.Parallel()
	var end error
	for _, err := range script(t, tell(t, "", "0=1")).WatchStates(t.Context(), jobhost.StateQuery{Job: "j", Run: "r", Tag: "a"}) {
		end = err
	}
	wantCode(t, end, jobhost.CodeUnavailable, "the stream of states broke off")
}
