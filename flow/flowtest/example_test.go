package flowtest_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/flow"
	"github.com/jobhost/jobhost/flow/flowtest"
)

// t prints what fails a test. In a test it is the *testing.T.
var t printer

type printer struct{}

func (printer) Helper()                           {}
func (printer) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// An order is charged, approved by a person, and sent.
func Example() {
	order := flow.New("order").Chain(
		flow.Worker("charge", "payments"),
		jobhost.Step{Name: "approve", Signal: "approved", When: "input.amount > 100"},
		jobhost.Step{Name: "send", Worker: "parcels", Input: "steps.charge.output.receipt", WhenSkipped: jobhost.RunWhatever},
	)

	k := flowtest.Build(t, order)
	k.Worker("payments", func(c *flowtest.Call) (any, error) {
		c.Takes(2 * time.Second)
		if c.Attempt == 1 {
			return nil, errors.New("the bank does not answer")
		}
		return map[string]string{"receipt": "R-17"}, nil
	})
	k.Worker("parcels", func(c *flowtest.Call) (any, error) {
		return fmt.Sprintf("sent for %s", c.Input), nil
	})

	run := k.Start(map[string]int{"amount": 120})
	run.Advance(24 * time.Hour)
	fmt.Println(run.Step("approve").Status, run.Step("approve").Reason)
	run.Signal("approved", map[string]string{"by": "Ada"})

	result := run.Wait()
	var sent string
	result.Output(&sent)
	fmt.Println(result.Status, sent)
	fmt.Print(result.Trace())
	// Output:
	// running waits for signal approved
	// completed sent for R-17
	// 0s workflow started
	// 0s charge started
	// 2s charge attempt 1 failed: the bank does not answer
	// 5s charge completed
	// 5s approve started (waits for signal approved)
	// 1d approve completed
	// 1d send started
	// 1d send completed
	// 1d workflow completed
}

// A timeout is tested without waiting for it.
func ExampleRun_Wait() {
	k := flowtest.New(t, jobhost.Workflow{Name: "approval", Steps: []jobhost.Step{
		{Name: "approve", Signal: "approved", Timeout: jobhost.Duration(48 * time.Hour)},
	}})
	result := k.Start(nil).Wait()
	fmt.Println(result.Status, result.Failure.Message)
	fmt.Println(result.EndedAt.Sub(result.StartedAt))
	// Output:
	// failed no signal approved has come within 48h0m0s
	// 48h0m0s
}

// A test fails if its workflow can't continue, with a list of what waits for what.
func ExampleRun_Wait_forEver() {
	k := flowtest.New(t, jobhost.Workflow{Name: "approval", Steps: []jobhost.Step{
		{Name: "approve", Signal: "approved"},
		{Name: "send", Worker: "parcels", Needs: []string{"approve"}},
	}})
	k.Start(nil).Wait()
	// Output:
	// flowtest: nothing can happen any more in workflow approval, and it has not ended:
	// 	step approve is running: it waits for signal approved
	// 	step send is pending: it needs approve
}

// A worker's permanent error makes the fallback run.
func ExamplePermanent() {
	k := flowtest.New(t, jobhost.Workflow{Name: "w", Steps: []jobhost.Step{{Name: "charge", Worker: "card", Fallback: "invoice"}}})
	k.Worker("card", func(*flowtest.Call) (any, error) {
		return nil, flowtest.Permanent(errors.New("the card has expired"))
	})
	k.Always("invoice", "on account")
	result := k.Start(nil).Wait()
	fmt.Println(result.Status, string(result.Bytes()), result.Step("charge").Failure.Message)
	// Output: completed "on account" the card has expired
}
