package examples_test

import (
	"testing"

	"github.com/jobhost/jobhost/internal/testing/toolchain"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

const linkedPage = `# Links
A [good one](http://site/hello "hello"), again: <http://site/hello>, a [missing](http://site/missing) one,
[here](#links), [there](other.md), mailto:ada@example.com.

<a class=x HREF='http://unknown/'>nobody</a> <img src="http://site/long">

[name]: http://site/missing?a=1&amp;b=2
`

func TestLinkcheck(t *testing.T) {
	t.Parallel()
	toolchain.Need(t, "node")
	toolchain.NeedModule(t, "@grpc/grpc-js")
	w := sdktest.OpenProcess(t, sdktest.Executable{Path: "linkcheck/linkcheck.js", Env: map[string]string{"NODE_PATH": toolchain.Modules()}})
	want := `{"links":5,"broken":[{"url":"http://site/missing","line":2,"fault":"status 404"},` +
		`{"url":"http://unknown/","line":5,"fault":"dns"},{"url":"http://site/missing?a=1&b=2","line":7,"fault":"dns"}]}`
	if got := w.Call(t, "", linkedPage); got != want {
		t.Errorf("%s, not %s", got, want)
	}
	for _, input := range []string{"", "no links", "[x](y.md)"} {
		if f := w.Fail(t, "", input); f.Retryable || f.Code != "no_links" {
			t.Errorf("%q: %+v", input, f)
		}
	}
}
