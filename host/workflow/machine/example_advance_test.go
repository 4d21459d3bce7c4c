package machine_test

import (
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// A store keeps the record, and does what each event comes to.
func ExampleMachine_Advance() {
	graph, err := machine.GraphOf(&jobhost.Workflow{Name: "order", Steps: []jobhost.Step{
		{Name: "charge", Worker: "payments"},
		{Name: "approve", Signal: "approved", Timeout: jobhost.Duration(24 * time.Hour)},
		{Name: "ship", Worker: "parcels", Needs: []string{"charge", "approve"}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := machine.New(graph, nobody{}) // there are no expressions
	if err != nil {
		fmt.Println(err)
		return
	}
	var record []byte
	for _, event := range []machine.Event{
		{What: machine.Started},
		{What: machine.Signalled, Signal: "approved", ID: "1", Payload: []byte(`{"by":"Ada"}`)},
		{What: machine.JobSucceeded, Run: machine.Run{Step: 0, Number: 1}},
		{What: machine.JobSucceeded, Run: machine.Run{Step: 0, Number: 1}}, // once more
		{What: machine.JobSucceeded, Run: machine.Run{Step: 2, Number: 1}},
	} {
		event.At = time.Unix(1e9, 0)
		out, err := c.Advance("wf-1", record, &event, nobody{})
		if err != nil {
			fmt.Println(err)
			return
		}
		if out.Record == nil {
			fmt.Println("nothing to do")
			continue
		}
		record = out.Record
		for _, change := range out.Changes {
			fmt.Println(graph.Steps[change.Step].Name, change.Status)
		}
		for _, job := range out.Submit {
			fmt.Println("  submit", job.ID)
		}
		for _, timer := range out.Set {
			fmt.Println("  wake me at", timer.At.UTC().Format(time.RFC3339))
		}
		if out.End != nil {
			fmt.Println("workflow", out.End.Status)
		}
	}
	// Output:
	// charge running
	// approve running
	//   submit wf-1.charge.1
	//   wake me at 2001-09-10T01:46:40Z
	// approve completed
	// charge completed
	// ship running
	//   submit wf-1.ship.1
	// nothing to do
	// ship completed
	// workflow completed
}
