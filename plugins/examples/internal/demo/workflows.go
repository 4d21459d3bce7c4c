package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// playETL runs the pipeline, looks at what was kept, and runs it again with less
// tolerance for bad lines.
func playETL(ctx context.Context, d *demo) error {
	for _, args := range [][]string{
		{"workflow", "graph", "etl"},
		{"workflow", "run", "etl", "--input", `{"file":"zones.csv","most_bad":10}`, "--id", "wf-zones-1", "--wait"},
		{"kv", "ls", "etl"},
		{"workflow", "run", "etl", "--input", `{"file":"zones.csv","most_bad":3}`, "--id", "wf-zones-2", "--wait"},
		{"workflow", "show", "wf-zones-2"},
	} {
		if err := d.jobhost(ctx, args...); err != nil {
			return err
		}
	}
	return d.expect(ctx, "wf-zones-2", "completed", map[string]string{"transform": "skipped", "store": "skipped"})
}

// playThumbnails makes a sheet, and shows its beginning.
func playThumbnails(ctx context.Context, d *demo) error {
	if err := d.jobhost(ctx, "workflow", "run", "thumbnails", "--input", `{"size":32}`, "--id", "wf-sheet"); err != nil {
		return err
	}
	if _, err := d.quiet(ctx, "workflow", "watch", "wf-sheet"); err != nil { // what it prints is the sheet
		return err
	}
	if err := d.jobhost(ctx, "job", "show", "wf-sheet.shrink.1"); err != nil {
		return err
	}
	if err := d.atOnce(ctx, "wf-sheet.shrink.1", 3); err != nil {
		return err
	}
	sheet, err := d.quiet(ctx, "job", "result", "wf-sheet.sheet.1")
	if err != nil {
		return err
	}
	fmt.Fprintf(d.stdout, "$ jobhost job result wf-sheet.sheet.1 > sheet.html    # %d bytes\n", len(sheet))
	for line := range strings.Lines(sheet) {
		if i := strings.Index(line, "base64,"); i > 0 {
			_, end, _ := strings.Cut(line, `">`)
			line = line[:i+12] + "…\">" + end
		}
		fmt.Fprint(d.stdout, line)
	}
	if n := strings.Count(sheet, "<figure>"); n != 12 {
		return fmt.Errorf("the sheet has %d pictures, not 12", n)
	}
	return d.expect(ctx, "wf-sheet", "completed", nil)
}

// playApproval has three orders: one that is approved, one that gets no answer, and a
// small one.
func playApproval(ctx context.Context, d *demo) error {
	for _, args := range [][]string{
		{"kv", "set", "shop", "stock/desk", "5"},
		{"kv", "set", "shop", "stock/lamp", "10"},
		{"workflow", "run", "order", "--input", `{"order":"A-17","item":"desk","quantity":2}`, "--id", "wf-A-17"},
		{"workflow", "graph", "wf-A-17"},
		{"workflow", "signal", "wf-A-17", "approve", "--payload", `{"approved":true,"by":"Ada"}`},
		{"workflow", "watch", "wf-A-17"},
		{"workflow", "run", "order", "--input", `{"order":"A-18","item":"desk","quantity":1}`, "--id", "wf-A-18", "--wait"},
		{"workflow", "trace", "wf-A-18"},
		{"workflow", "run", "order", "--input", `{"order":"A-19","item":"lamp","quantity":1}`, "--id", "wf-A-19", "--wait"},
		{"kv", "get", "shop", "stock/desk"},
	} {
		if err := d.jobhost(ctx, args...); err != nil {
			return err
		}
	}
	return d.expect(ctx, "wf-A-18", "completed", map[string]string{"charge": "skipped", "decline": "completed", "release": "completed"})
}

// playResilient runs a workflow while the site is down, until it has failed; then the site
// recovers, and the step is retried manually.
func playResilient(ctx context.Context, d *demo) error {
	d.pages.SetDown(true)
	input := `{"site":"http://` + d.site + `"}`
	if err := d.jobhost(ctx, "workflow", "run", "shop", "--input", input, "--id", "wf-shop", "--wait"); err == nil {
		return errors.New("the workflow has not failed")
	}
	if err := d.expect(ctx, "wf-shop", "failed", map[string]string{"catalogue": "completed", "prices": "failed"}); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"workflow", "trace", "wf-shop"},
		{"dead", "ls"},
	} {
		if err := d.jobhost(ctx, args...); err != nil {
			return err
		}
	}
	d.pages.SetDown(false)
	fmt.Fprintln(d.stdout, "# Now the prices are there again.")
	for _, args := range [][]string{
		{"workflow", "retry", "wf-shop"},
		{"job", "why", "wf-shop.prices.2"},
		{"workflow", "watch", "wf-shop"},
	} {
		if err := d.jobhost(ctx, args...); err != nil {
			return err
		}
	}
	return d.expect(ctx, "wf-shop", "completed", map[string]string{"prices": "completed", "report": "completed"})
}

// atOnce checks that no more than a number of tasks of a job ran at one time.
func (d *demo) atOnce(ctx context.Context, id string, most int) error {
	text, err := d.quiet(ctx, "job", "show", id, "-o", "json")
	if err != nil {
		return err
	}
	var job struct {
		Tasks []struct {
			StartedAt time.Time `json:"started_at"`
			EndedAt   time.Time `json:"ended_at"`
		}
	}
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		return fmt.Errorf("read job %s: %w", id, err)
	}
	for _, at := range job.Tasks {
		n := 0
		for _, t := range job.Tasks {
			if !t.StartedAt.After(at.StartedAt) && t.EndedAt.After(at.StartedAt) {
				n++
			}
		}
		if n > most {
			return fmt.Errorf("%d tasks of job %s ran at %s, more than %d", n, id, at.StartedAt, most)
		}
	}
	return nil
}

// expect checks the status of a workflow and some of its steps.
func (d *demo) expect(ctx context.Context, id, status string, steps map[string]string) error {
	text, err := d.quiet(ctx, "workflow", "show", id, "-o", "json")
	if err != nil {
		return err
	}
	var run struct {
		Status string
		Steps  []struct{ Name, Status string }
	}
	if err := json.Unmarshal([]byte(text), &run); err != nil {
		return fmt.Errorf("read workflow %s: %w", id, err)
	}
	if run.Status != status {
		return fmt.Errorf("workflow %s is %s, not %s", id, run.Status, status)
	}
	for _, s := range run.Steps {
		if want := steps[s.Name]; want != "" && s.Status != want {
			return fmt.Errorf("step %s of workflow %s is %s, not %s", s.Name, id, s.Status, want)
		}
	}
	return nil
}
