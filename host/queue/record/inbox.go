package record

import "context"

// Inbox is the part of a store into which other programs put jobs, in transactions of their own: a job is there once
// theirs is committed. It leaves the inbox together with its [Submit], or with a [Refuse], so that it is submitted
// exactly once.
type Inbox interface {
	// Incoming returns jobs of the inbox, the lowest numbers first, up to limit and few enough that they fit in memory. Those for
	// some workers are left out.
	Incoming(ctx context.Context, limit int, without []string) ([]Incoming, error)
}

// Incoming is a job in an [Inbox].
type Incoming struct {
	Number int64
	ID     string
	// Body is JSON as the API takes it for a submit, with the id and the worker and without the payload.
	Body    []byte
	Payload []byte
}

// Refuse removes a job from the [Inbox] that can't be submitted, and keeps the reason for its owner; without a Reason
// the job is there already.
type Refuse struct {
	Incoming int64
	Reason   string
}

func (*Refuse) op() {}
