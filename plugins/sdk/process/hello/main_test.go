package main

import (
	"testing"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/process"
)

func TestHello(t *testing.T) {
	t.Parallel()
	if got := process.Run(t.Context(), hello, jobhost.Attempt{Input: []byte("Ada\n")}); string(got.Output) != "hello, Ada" {
		t.Errorf("%q, %v", got.Output, got.Err)
	}
	if got := process.Run(t.Context(), hello, jobhost.Attempt{}); got.Err == nil {
		t.Errorf("an empty payload gave %q", got.Output)
	}
}
