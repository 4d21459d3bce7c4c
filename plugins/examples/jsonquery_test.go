package examples_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

func TestJSONQuery(t *testing.T) {
	t.Parallel()
	module := builtOrSkipped(t, "jsonquery", "../sdk/rust")
	g := guesttest.Start(t, module)
	lines := guesttest.Read(t, "jsonquery/requests.jsonl")
	for _, c := range []struct {
		name   string
		config map[string]string
		want   string
	}{
		{
			"which",
			map[string]string{"where": "client.country == JP"},
			`{"time":"09:00:04","method":"GET","path":"/","status":304,"ms":0.8,"client":{"country":"JP"}}` + "\n",
		},
		{"how many", map[string]string{"by": "status", "where": `path ~ "users"`}, `{"status":200,"count":1}
{"status":404,"count":1}
{"status":500,"count":1}
`},
		{"how much", map[string]string{"by": "path", "of": "ms", "where": "status >= 500"}, `{"path":"/api/orders","count":2,"sum":2006.2,"min":1001.3,"mean":1003.1,"max":1004.9}
{"path":"/api/users","count":1,"sum":77.6,"min":77.6,"mean":77.6,"max":77.6}
`},
	} {
		g.Attempt = &guesttest.Attempt{Input: lines, Info: map[string]string{}}
		for key, value := range c.config {
			g.Attempt.Info["config."+key] = value
		}
		if err := g.Call("jh_run"); err != nil {
			t.Fatal(err)
		}
		if got := string(g.Attempt.Output); got != c.want || g.Attempt.Kind != 0 {
			t.Errorf("%s: %s %s", c.name, got, g.Attempt.Failure)
		}
	}
	if got := sdktest.Call(t, module, "", string(lines)); got != string(lines) {
		t.Errorf("asked nothing: %s", got)
	}
	f := sdktest.Fail(t, module, "", "{}\n[1\n")
	if f.Retryable || f.Code != "bad_json" || !strings.HasPrefix(f.Message, "line 2, column 3: ") {
		t.Errorf("%+v", f)
	}
	if f := sdktest.Fail(t, module, "", strings.Repeat("[", 1<<20)); f.Code != "bad_json" {
		t.Errorf("%+v", f)
	}
}
