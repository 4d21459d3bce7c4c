package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/netproxy/policy"
)

func newWorkerHTTPCheckCommand(e workerEnv) *cobra.Command {
	var method string
	cmd := &cobra.Command{
		Use:   "http-check WORKER URL",
		Short: "Tell whether a worker may send a request to a URL, and why",
		Long: `Tell whether a worker may send a request to a URL, and why.

The rules are those of the manifest; no host is asked, and nothing is sent but
questions to the name servers. It tells which rule allows the request, or what
keeps the nearest one from it, and for each address of the host whether it may
be dialled. The worker itself only learns that a place is denied. Exit
code 1 = the request is denied.`,
		Example: `  jobhost worker http-check fetch https://api.example.com/v1/things
  jobhost worker http-check fetch http://localhost:8080 --method POST`,
		Args: exactly("WORKER", "URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.checkHTTP(cmd.Context(), args[0], method, args[1])
		},
	}
	cmd.Flags().StringVar(&method, "method", http.MethodGet, "the `METHOD` of the request")
	complete(cmd, "method", policy.Methods()...)
	return cmd
}

func (e workerEnv) checkHTTP(ctx context.Context, name, method, url string) error {
	w, err := execWorker(e.env, name)
	if err != nil {
		return err
	}
	if w.HTTP == nil {
		w.HTTP = &host.HTTP{}
	}
	client, err := netproxy.New(w.HTTP.Config)
	if err != nil {
		return err
	}
	defer client.Close()
	v, unresolved := client.Check(ctx, strings.ToUpper(method), url)
	if jobhost.CodeOf(unresolved) == jobhost.CodeInvalid {
		return asUsage(unresolved)
	}
	if e.wantsJSON() {
		if err := e.json(&v); err != nil {
			return err
		}
	} else {
		e.printVerdict(&v, unresolved)
	}
	if !v.Allowed {
		return errReported
	}
	return nil
}

func (e workerEnv) printVerdict(v *policy.Verdict, unresolved error) {
	t := e.newTable()
	t.field("request", v.Method+" "+v.URL)
	t.field("verdict", map[bool]string{true: "allowed", false: "denied"}[v.Allowed])
	switch {
	case v.Rule != "":
		t.field("rule", v.Rule)
	case v.Nearest != "":
		t.field("rule", fmt.Sprintf("none; the nearest is %s, but %s", v.Nearest, strings.Join(v.Differs, "; ")))
	default:
		t.field("rule", "none: the worker has no http.allow")
	}
	if unresolved != nil {
		t.field("addresses", "none: "+unresolved.Error())
	}
	for _, a := range v.Addresses {
		text := a.Addr.String() + ": may be dialled"
		if !a.Allowed {
			text = a.Addr.String() + ": denied, " + a.Why
		}
		t.field("address", text)
	}
	t.flush()
}
