package netproxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// printer is a handler that prints the results.
type printer struct{}

func (printer) OnComplete(_ context.Context, t *netproxy.Task, r *netproxy.Response) {
	fmt.Printf("%s(%s): %d %s\n", t.Callback(), r.Args, r.Status, r.Body)
}

func (printer) OnError(_ context.Context, t *netproxy.Task, e *netproxy.Error) {
	fmt.Printf("%s(%s): %s, %s\n", t.Callback(), e.Args, e.Code, e.Message)
}

func (printer) Retry(_ context.Context, t *netproxy.Task) {
	fmt.Printf("%s has to be enqueued again\n", t.Request().ID())
}

// Requests are enqueued and sent without blocking; their handler is called with
// the results. Only what the policy allows is reached.
func ExampleProcessor() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer server.Close()
	rule, err := policy.ParseRule("GET " + server.URL + "/v1/*")
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := netproxy.New(netproxy.Config{Policy: policy.Policy{
		Allow:        []policy.Rule{rule},
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	p := netproxy.NewProcessor(netproxy.ProcessorConfig{Client: client})
	if err := p.Start(); err != nil {
		fmt.Println(err)
		return
	}
	for i, url := range []string{server.URL + "/v1/users", "http://169.254.169.254/latest/meta-data/"} {
		request, err := netproxy.NewRequest(netproxy.RequestSpec{URL: url})
		if err == nil {
			err = p.Enqueue(netproxy.NewTask(request, printer{}, "fetched", fmt.Append(nil, i)))
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	if err := p.Stop(10 * time.Second); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// fetched(0): 200 hello
	// fetched(1): denied, http://169.254.169.254 may not be reached
}
