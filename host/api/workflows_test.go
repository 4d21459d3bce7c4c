package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

func TestWorkflows(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	body := `{"id":"wf-a","workflow":"chain","input":{"n": 1},"labels":{"k":"v"},"retention":"2h"}`
	first := f.do("POST", "/v1/workflows", body)
	f.want(first, 201, `{"id":"wf-a","status":"`, `"deduplicated":false`)
	if at := first.header.Get("Location"); at != "/v1/workflows/wf-a" {
		t.Errorf("got location %q", at)
	}
	f.want(f.do("POST", "/v1/workflows", body), 200, `"deduplicated":true`)
	f.want(f.do("POST", "/v1/workflows", strings.Replace(body, "1}", "2}", 1)), 409, `"code":"conflict"`)
	f.want(f.do("POST", "/v1/workflows", body, "Authorization", ""), 401)
	f.want(f.do("POST", "/v1/workflows?wait=30s", body), 200, `"status":"completed"`, `"output":{"n":1}`, `"deduplicated":true`)
	f.want(f.do("POST", "/v1/workflows?wait=30s", `{"workflow":"chain","input":"text"}`), 201, `"output":"text"`, `"steps":[`)
	f.want(f.do("POST", "/v1/workflows?wait=30s", `{"workflow":"chain","input_base64":"//4="}`), 201, `"output":"//4="`)
	f.want(f.do("POST", "/v1/workflows?wait=1ms", `{"id":"wf-b","workflow":"approval"}`), 202, `"status":"running"`)
	along := `{"definition":{"name":"along","steps":[{"name":"a","worker":"test","entry":"echo","input":"string(size(input))"}]},"input":[1,2]}`
	f.want(f.do("POST", "/v1/workflows?wait=30s", along), 201, `"name":"along"`, `"output":2`)

	f.want(f.do("GET", "/v1/workflows/wf-a", ""), 200, `"labels":{"k":"v","kind":"chain"}`, `"steps":[{"name":"first","status":"completed"`)
	f.want(f.do("GET", "/v1/workflows/wf-b?wait=1ms", ""), 202, `"status":"running"`)
	f.want(f.do("GET", "/v1/workflows/wf-c", ""), 404, `"code":"not_found"`)
	for _, r := range []reply{
		f.do("GET", "/v1/workflows/a", ""), f.do("GET", "/v1/workflows/a/trace", ""), f.do("POST", "/v1/workflows/a/cancel", ""), f.do("DELETE", "/v1/workflows/a", ""),
	} {
		f.want(r, 400, `"field":"id"`, "is not the id of a workflow")
	}
	f.want(f.do("GET", "/v1/workflows/wf-a/trace", ""), 200, `"what":"started"`, `"step":"second"`)
	f.want(f.do("GET", "/v1/workflows/wf-a/definition", ""), 200, `{"name":"chain",`)
	f.want(f.do("GET", "/v1/workflows?name=approval&status=running", ""), 200, `{"workflows":[{"id":"wf-b"`)
	f.want(f.do("GET", "/v1/workflows?name=other", ""), 200, `{"workflows":[]}`)
	f.want(f.do("GET", "/v1/workflows?limit=2", ""), 200, `"next":"`)
	for _, query := range []string{"status=odd", "name=A", "parent=x", "after=x", "before=1", "limit=0", "label=a"} {
		f.want(f.do("GET", "/v1/workflows?"+query, ""), 400)
	}
	f.want(f.do("GET", "/v1/definitions", ""), 200, `[{"name":"approval",`)
	f.want(f.do("GET", "/v1/definitions/approval", ""), 200, `"signal":"approved"`)
	f.want(f.do("GET", "/v1/definitions/Approval", ""), 400)
	f.want(f.do("GET", "/v1/definitions/other", ""), 404)
}

func TestWorkflowsRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	for _, bad := range []struct{ body, want string }{
		{`{}`, `"field":"workflow"`},
		{`{"workflow":"chain","definition":{"name":"a"}}`, "one of them"},
		{`{"id":"a","workflow":"chain"}`, `"field":"id"`},
		{`{"wrokflow":"chain"}`, "did you mean workflow"},
		{`{"definition":{"name":"a","stesp":[]}}`, "did you mean steps"},
		{`{"definition":{"name":"a","name":"b"}}`, "duplicate"},
		{`{"workflow":"chain","input":1,"input_text":"1"}`, "both set"},
		{`{"workflow":"chain"}{}`, "send one JSON object"},
	} {
		f.want(f.do("POST", "/v1/workflows", bad.body), 400, bad.want)
	}
	f.want(f.do("POST", "/v1/workflows", `{"workflow":"other"}`), 404, `"field":"workflow"`)
	f.want(f.do("POST", "/v1/workflows", `{"workflow":"chain","input":"`+strings.Repeat("x", 1<<20)+`"}`), 413, "input of 1048578 bytes")
	f.want(f.do("POST", "/v1/workflows", strings.Repeat(" ", jobhost.MaxWorkflowBytes+2<<20)), 413)
	faulty := `{"name":"A","steps":[{"name":"a","worker":"test","needs":["c"],"when":"1 +"},{"name":"a","worker":"other"}]}`
	for _, r := range []reply{f.do("POST", "/v1/workflows:check", faulty), f.do("POST", "/v1/workflows", `{"definition":`+faulty+`}`)} {
		f.want(r, 400, `"field":"name"`, `"errors":[`, `"field":"steps.a.needs`, `"field":"steps.a.when"`)
	}
	f.want(f.do("POST", "/v1/workflows:check", `{"name":"a","steps":[],"x":1}`), 400, "there is no setting")
	f.want(f.do("POST", "/v1/workflows:check", `[]`), 400, "not a workflow")
	f.want(f.do("POST", "/v1/workflows:check", strings.Repeat(" ", jobhost.MaxWorkflowBytes+1)), 413, `"code":"too_large"`)
	f.want(f.do("POST", "/v1/workflows:check", `{"name":"a"}`, "Authorization", ""), 401)
	f.want(f.do("POST", "/v1/workflows:check", `{"name":"a","steps":[{"name":"a","worker":"test"}]}`), 200, `{"ok":true,"hash":"`)

	// A large definition is taken, of the size that it may have.
	large := fmt.Sprintf(`{"name":"a","description":"d","steps":[{"name":"a","worker":"test"}]%s}`, strings.Repeat(" ", 5<<20))
	f.want(f.do("POST", "/v1/workflows:check", large), 200)
	f.want(f.do("POST", "/v1/workflows", `{"definition":`+large+`}`), 201)
}

func TestChangeWorkflows(t *testing.T) {
	t.Parallel()
	f := setup(t, options{})
	start := func(id, workflow string) {
		f.want(f.do("POST", "/v1/workflows", `{"id":"`+id+`","workflow":"`+workflow+`"}`), 201)
	}
	start("wf-a", "approval")
	f.want(f.do("POST", "/v1/workflows/wf-a/signals/approved", `{"id":"s","payload":{"by":"Ada"}}`), 204)
	f.want(f.do("GET", "/v1/workflows/wf-a?wait=30s", ""), 200, `"output":{"by":"Ada"}`)
	f.want(f.do("POST", "/v1/workflows/wf-a/signals/approved", ""), 409)
	f.want(f.do("POST", "/v1/workflows/wf-a/cancel", ""), 409)
	f.want(f.do("POST", "/v1/workflows/wf-a/retry", ""), 409)
	f.want(f.do("DELETE", "/v1/workflows/wf-a", "", "Authorization", ""), 401)
	f.want(f.do("DELETE", "/v1/workflows/wf-a", ""), 204)
	f.want(f.do("DELETE", "/v1/workflows/wf-a", ""), 404)

	start("wf-b", "approval")
	f.want(f.do("DELETE", "/v1/workflows/wf-b", ""), 409, "cancel it first: jobhost workflow cancel wf-b")
	f.want(f.do("POST", "/v1/workflows/wf-b/signals/other", ""), 404, `"field":"signal"`)
	f.want(f.do("POST", "/v1/workflows/wf-b/signals/a.b", ""), 400, `"field":"name"`)
	f.want(f.do("POST", "/v1/workflows/wf-b/signals/approved", `{"payload":1,"payload_text":"a"}`), 400, "both set")
	f.want(f.do("POST", "/v1/workflows/wf-b/signals/approved", `x`, "Content-Type", wire.Bytes), 415)
	f.want(f.do("POST", "/v1/workflows/wf-b/signals/approved", `{"payload":"`+strings.Repeat("x", 65<<10)+`"}`), 413)
	f.want(f.do("POST", "/v1/workflows/wf-b/signals/approved", `{"payload":"`+strings.Repeat("x", 300<<10)+`"}`), 413)
	f.want(f.do("POST", "/v1/workflows/wf-b/cancel", `{"raeson":"no"}`), 400, "did you mean reason")
	f.want(f.do("POST", "/v1/workflows/wf-b/cancel", `{"reason":"no more"}`), 200, `"status":"cancelled"`, `"reason":"no more"`)
	f.want(f.do("POST", "/v1/workflows/wf-b/cancel", ""), 200)

	failing := `{"id":"wf-c","definition":{"name":"c","steps":[{"name":"bad","worker":"test","entry":"fail_permanent"}]}}`
	f.want(f.do("POST", "/v1/workflows?wait=30s", failing), 201, `"status":"failed"`, `"step":"bad"`, `"failure":{`)
	f.want(f.do("POST", "/v1/workflows/wf-c/retry", `{"step":"none"}`), 404, `"field":"step"`)
	f.want(f.do("POST", "/v1/workflows/wf-c/retry", `{"step":"bad"}`), 200, `"runs":2`)
	f.want(f.do("GET", "/v1/workflows/wf-c?wait=30s", ""), 200, `"status":"failed"`)
	f.want(f.do("POST", "/v1/workflows/wf-c/retry", ""), 200, `"runs":3`)
}
