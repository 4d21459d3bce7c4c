package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newJobWhyCommand(e jobEnv) *cobra.Command {
	return e.one("why", "Explain why a job is in its state, and what would change that",
		`  ID=$(jobhost submit wordcount "to be or not to be" --delay 1h)
  jobhost job why $ID`, e.why)
}

func (e jobEnv) why(ctx context.Context, server jobhost.Server, id string) error {
	why, err := server.Why(ctx, id)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return e.json(why)
	}
	t := e.newTable()
	t.field("state", why.State.String())
	t.field("reason", why.Reason)
	t.field("code", why.Code)
	t.field("until", e.whenever(why.Until))
	t.field("ends", why.Ends)
	t.flush()
	return nil
}
