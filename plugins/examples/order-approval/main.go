// Command order-approval is a worker of a shop, with an entry for each step of an order: it
// determines the price, reserves the items, charges for them, or releases them.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func init() {
	// Done before the sandbox's memory is saved as the initial state of all jobs.
	for _, v := range []any{&order{}, &end{}, &approval{}, &late{}} {
		text, _ := json.Marshal(v)
		_ = json.Unmarshal(text, v)
	}
	jobhost.Handle(step(price))
}

func main() {}

//go:wasmexport reserve
func reserveEntry(n uint32) uint64 { return jobhost.Entry(n, step(reserve)) }

//go:wasmexport decline
func declineEntry(n uint32) uint64 { return jobhost.Entry(n, step(decline)) }

//go:wasmexport charge
func chargeEntry(n uint32) uint64 { return jobhost.Entry(n, step(charge)) }

//go:wasmexport release
func releaseEntry(n uint32) uint64 { return jobhost.Entry(n, step(release)) }

// step makes a handler from a function from JSON to JSON.
func step[In, Out any](f func(*jobhost.Job, In) (Out, error)) jobhost.Handler {
	return func(job *jobhost.Job) ([]byte, error) {
		var in In
		if err := json.Unmarshal(job.Input(), &in); err != nil {
			return nil, jobhost.Permanent(err)
		}
		out, err := f(job, in)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
}

// order is the input of the workflow, and with its total what price returns.
type order struct {
	Order    string `json:"order"`
	Item     string `json:"item"`
	Quantity int64  `json:"quantity"`
	Total    int64  `json:"total"`
	// What release gets in addition: who declined it, or how the charge failed.
	Approval *approval `json:"approval,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// approval is the payload of the signal, or its replacement if none arrives.
type approval struct {
	Approved bool   `json:"approved"`
	By       string `json:"by"`
	Why      string `json:"why,omitempty"`
}

// end is what the workflow returns.
type end struct {
	Order string `json:"order"`
	State string `json:"state"` // charged or released
	Total int64  `json:"total"`
	Why   string `json:"why,omitempty"`
}

func refused(code, format string, args ...any) error {
	return jobhost.Permanent(&jobhost.Failure{Err: fmt.Errorf(format, args...), Code: code, Category: jobhost.Business})
}

// price gets the price of an item from config.ITEM.
func price(job *jobhost.Job, o order) (order, error) {
	text, _ := job.Config(o.Item)
	each, err := strconv.ParseInt(text, 10, 64)
	if err != nil || o.Quantity < 1 || o.Quantity > 1000 {
		return o, refused("no_such_item", "%d of %q can't be had", o.Quantity, o.Item)
	}
	o.Total = each * o.Quantity
	return o, nil
}

// reserve takes the items out of the stock, which is a key of the worker. The key
// changes when the job succeeds: an attempt that fails has reserved nothing.
func reserve(job *jobhost.Job, o order) (map[string]int64, error) {
	left, err := job.KV().Add("stock/"+o.Item, -o.Quantity)
	if err != nil {
		return nil, err
	}
	if left < 0 {
		return nil, refused("out_of_stock", "%d of %s are missing", -left, o.Item)
	}
	return map[string]int64{"left": left}, nil
}

// late is the input of decline.
type late struct {
	Why string `json:"why"`
}

// decline replaces an approval that has not arrived.
func decline(_ *jobhost.Job, in late) (approval, error) {
	return approval{By: "nobody", Why: in.Why}, nil
}

// charge asks a bank that grants a credit of config.credit.
func charge(job *jobhost.Job, o order) (end, error) {
	text, _ := job.Config("credit")
	credit, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return end{}, jobhost.Permanent(errors.New("config.credit is not a number"))
	}
	if o.Total > credit {
		return end{}, refused("no_credit", "the bank refuses %d", o.Total)
	}
	return end{Order: o.Order, State: "charged", Total: o.Total}, nil
}

// release gives back what was reserved.
func release(job *jobhost.Job, o order) (end, error) {
	if _, err := job.KV().Add("stock/"+o.Item, o.Quantity); err != nil {
		return end{}, err
	}
	why := o.Error
	if o.Approval != nil && !o.Approval.Approved {
		why = fmt.Sprintf("declined by %s: %s", o.Approval.By, o.Approval.Why)
	}
	return end{Order: o.Order, State: "released", Total: o.Total, Why: why}, nil
}
