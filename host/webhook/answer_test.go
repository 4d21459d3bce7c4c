package webhook

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// What the statuses mean.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status    int
		header    string // Retry-After
		retryable bool
		after     time.Duration
	}{
		{200, "", true, 0},
		{204, "", true, 0},
		{299, "", true, 0},
		{304, "", true, 0},
		{400, "", false, 0},
		{401, "", false, 0},
		{404, "30", false, 0},
		{410, "", false, 0},
		{413, "", false, 0},
		{422, "", false, 0},
		{408, "", true, 0},
		{409, "", true, 0},
		{425, "", true, 0},
		{429, "30", true, 30 * time.Second},
		{429, "", true, 0},
		{429, "soon", true, 0},
		{500, "30", true, 0},
		{502, "", true, 0},
		{504, "", true, 0},
		{599, "", true, 0},
		{503, "7200", true, maxRetryAfter},
	} {
		t.Run(strconv.Itoa(tt.status)+" "+tt.header, func(t *testing.T) {
			t.Parallel()
			r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", tt.header)
				w.WriteHeader(tt.status)
			})
			outcome := attempt(t, worker(t, settings(t, r.URL)), r.URL, time.Minute)
			if tt.status < 300 {
				if outcome.Kind != jobhost.OutcomeSucceeded {
					t.Errorf("got %+v", outcome)
				}
				return
			}
			f := outcome.Failure
			if f == nil || f.Code != "http_"+strconv.Itoa(tt.status) || f.Retryable != tt.retryable || outcome.RetryAfter != tt.after {
				t.Errorf("got %+v, %+v", outcome, f)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "-1": 0, "1.5": 0, "soon": 0, "5": 5 * time.Second, "3600": time.Hour, "3601": time.Hour,
		"9223372036854775807": time.Hour, "9223372036854775808": 0, "99999999999999999999999": 0,
		"Tue, 03 Feb 2026 04:05:16 GMT": 10 * time.Second,
		"Tue, 03 Feb 2026 04:05:00 GMT": 0,
		"Thu, 03 Feb 2028 04:05:00 GMT": time.Hour,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

// FuzzRetryAfter: whatever a receiver says, the wait is within bounds.
func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"5", "Tue, 03 Feb 2026 04:05:16 GMT", "-1", "9223372036854775807", "Sunday, 06-Nov-94 08:49:37 GMT"} {
		f.Add(seed)
	}
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		if d := retryAfter(text, now); d < 0 || d > maxRetryAfter {
			t.Fatalf("%q is %v", text, d)
		}
	})
}
