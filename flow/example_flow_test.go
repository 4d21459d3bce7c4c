package flow_test

import (
	"fmt"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/flow"
)

func Example() {
	b := flow.New("pipeline").
		Chain(flow.Worker("fetch", "fetcher"), flow.Worker("parse", "parser")).
		Parallel("parse", flow.Worker("index", "indexer"), flow.Worker("thumbs", "images")).
		Join(flow.Worker("report", "mailer"), "index", "thumbs").
		Update("parse", func(s *jobhost.Step) { s.When = "steps.fetch.output.status == 200" })
	small := b.Clone().Remove("thumbs").Set(func(w *jobhost.Workflow) { w.Name = "small" })

	for _, b := range []*flow.Builder{b, small} {
		w, err := b.Workflow()
		if err != nil {
			fmt.Println(err)
		}
		fmt.Println(w.Name)
		for _, s := range w.Steps {
			fmt.Printf("  %s needs [%s]\n", s.Name, strings.Join(s.Needs, " "))
		}
	}
	// Output:
	// pipeline
	//   fetch needs []
	//   parse needs [fetch]
	//   index needs [parse]
	//   thumbs needs [parse]
	//   report needs [index thumbs]
	// small
	//   fetch needs []
	//   parse needs [fetch]
	//   index needs [parse]
	//   report needs [index parse]
}
