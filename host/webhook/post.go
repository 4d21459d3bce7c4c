package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/httpurl"
	"github.com/jobhost/jobhost/internal/version"
	"github.com/jobhost/jobhost/netproxy/guard"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// poster posts messages.
type poster struct {
	transport http.RoundTripper
	keys      []Key
}

// maxAnswerBytes bounds what is read of an answer. If there is more, the connection is
// closed.
const maxAnswerBytes = 64 << 10

// run makes one attempt at a delivery.
func (p *poster) run(ctx context.Context, at *hostcall.Attempt) jobhost.Outcome {
	var d delivery
	err := json.Unmarshal(at.Input, &d)
	u, urlErr := httpurl.Parse(d.URL)
	if err != nil || urlErr != nil {
		return fail(at, failure{Code: "bad_delivery", Category: jobhost.CategoryValidation, Message: "the payload is not a delivery"})
	}
	req, err := p.request(ctx, at.Job, u.String(), d.Body)
	if err != nil {
		return fail(at, failure{Code: "bad_delivery", Category: jobhost.CategoryValidation, Message: "the delivery makes no request"})
	}
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return failed(ctx, at, u, err)
	}
	// An incomplete body is good enough: the status is the answer.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	_ = resp.Body.Close()
	return answered(at, u, resp, body)
}

func (p *poster) request(ctx context.Context, id, url string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "jobhost/"+version.Get().Version)
	req.Header.Set("Webhook-Id", id) // the same in every attempt
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	req.Header.Set("Webhook-Signature", sign(p.keys, id, now, body))
	return req, nil
}

// failed is the outcome of an attempt that got no answer.
func failed(ctx context.Context, at *hostcall.Attempt, u httpurl.URL, err error) jobhost.Outcome {
	if ctx.Err() != nil {
		return jobhost.Outcome{} // stopped
	}
	fault, message := guard.Explain(err)
	f := failure{Code: string(fault), Category: jobhost.CategoryNetwork, Message: u.Origin() + ": " + message}
	switch fault {
	case guard.FaultDenied:
		f.Code, f.Category, f.Message = jobhost.FailDenied, jobhost.CategoryBusiness, message
	case guard.FaultTimeout:
		f.Category = jobhost.CategoryTimeout
	}
	return fail(at, f)
}

// failure is what is recorded of a failed attempt, in the form that guests use.
type failure struct {
	Code     string           `json:"code"`
	Category jobhost.Category `json:"category"`
	Message  string           `json:"message"`
	Context  *answer          `json:"context,omitempty"`
}

// fail records a failure; its category determines whether there is another attempt.
func fail(at *hostcall.Attempt, f failure) jobhost.Outcome {
	kind := hostcall.FailPermanent
	if f.Category.Retryable() {
		kind = hostcall.FailRetryable
	}
	text, err := json.Marshal(f)
	if err != nil {
		text = []byte(f.Message)
	}
	at.Fail(kind, text)
	outcome, _ := at.Failed()
	return outcome
}
