package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/httpurl"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// answer is the recorded part of a receiver's answer.
type answer struct {
	Status   int    `json:"status"`
	Location string `json:"location,omitempty"` // of a redirect
	Body     string `json:"body,omitempty"`     // its beginning
}

// Limits on what is kept of an answer, and on the delay it asks for.
const (
	maxKeptBytes     = 1 << 10
	maxLocationBytes = 256
	maxRetryAfter    = time.Hour
)

// answered is the outcome of an attempt that got an answer.
func answered(at *hostcall.Attempt, u httpurl.URL, resp *http.Response, body []byte) jobhost.Outcome {
	a := &answer{Status: resp.StatusCode}
	if a.Status >= 200 && a.Status <= 299 {
		result, err := json.Marshal(a)
		if err != nil {
			result = nil
		}
		return at.Outcome(result)
	}
	a.Body = cut(string(body), maxKeptBytes)
	f := failure{
		Code: "http_" + strconv.Itoa(a.Status), Category: jobhost.CategoryNetwork, Context: a,
		Message: strings.TrimSpace(fmt.Sprintf("%s answered %d %s", u.Origin(), a.Status, http.StatusText(a.Status))),
	}
	switch {
	case a.Status == http.StatusGone:
		f.Category = jobhost.CategoryBusiness
		f.Message += ": it wants no more deliveries"
	case a.Status >= 300 && a.Status <= 399:
		a.Location = cut(resp.Header.Get("Location"), maxLocationBytes)
		f.Message += ": deliveries don't follow redirects, name the URL where they end"
	case a.Status >= 400 && a.Status <= 499 && !mayPass(a.Status):
		f.Category = jobhost.CategoryBusiness
	}
	outcome := fail(at, f)
	if a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable {
		outcome.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	}
	return outcome
}

// mayPass reports whether a refused request may be accepted later.
func mayPass(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return false
}

// retryAfter parses the header of that name: seconds, or a date. 0 = it has no
// valid value; never more than [maxRetryAfter].
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 63); err == nil {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// cut returns the beginning of what a receiver sent, as valid text.
func cut(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "\uFFFD") }
