package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// examples lists the examples, by the names of their folders.
var examples = map[string]example{
	"fetch":          {site: "127.0.0.1:8181", api: "127.0.0.1:7181", play: playFetch},
	"webhook-fanout": {site: "127.0.0.1:8182", api: "127.0.0.1:7182", play: playFanOut},
	"scrape-defer":   {site: "127.0.0.1:8183", api: "127.0.0.1:7183", play: playScrape},

	"partitioned-ingest": {api: "127.0.0.1:7184", play: playIngest},
	"chat-room":          {api: "127.0.0.1:7185", play: playChat},

	"etl":              {api: "127.0.0.1:7186", play: playETL},
	"image-thumbnails": {api: "127.0.0.1:7187", play: playThumbnails},
	"order-approval":   {api: "127.0.0.1:7188", play: playApproval},
	"resilient-fetch":  {site: "127.0.0.1:8189", api: "127.0.0.1:7189", play: playResilient},
}

// input is a file of the example, as an argument of submit.
func (d *demo) input(name string) string {
	return "@" + filepath.Join(d.folder, d.name, "testdata", name)
}

func playFetch(ctx context.Context, d *demo) error {
	return d.jobhost(ctx, "submit", "fetch", d.input("urls.txt"), "--wait")
}

// playFanOut submits an event, waits until the flaky subscriber has it too, and
// submits the event again.
func playFanOut(ctx context.Context, d *demo) error {
	if err := d.jobhost(ctx, "submit", "webhook-fanout", d.input("order.json"), "--wait"); err != nil {
		return err
	}
	ids, err := d.ended(ctx, "--label", "event=order-7")
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := d.jobhost(ctx, "job", "show", id); err != nil {
			return err
		}
	}
	if err := d.jobhost(ctx, "submit", "webhook-fanout", d.input("order.json"), "--wait"); err != nil {
		return err
	}
	for _, receiver := range []string{"stock", "mail", "flaky", "gone"} {
		fmt.Fprintf(d.stdout, "%s has %d:", receiver, len(d.pages.Received(receiver)))
		for _, delivery := range d.pages.Received(receiver) {
			fmt.Fprintf(d.stdout, " %s (%s)", delivery.Body, delivery.Key)
		}
		fmt.Fprintln(d.stdout)
	}
	return nil
}

// playScrape crawls the shop, and prints what was found when nothing runs any more.
func playScrape(ctx context.Context, d *demo) error {
	task := `{"url":"http://` + d.site + `/shop/","depth":2}`
	if err := d.jobhost(ctx, "submit", "scrape-defer", task, "--label", "crawl=shop", "--wait"); err != nil {
		return err
	}
	if _, err := d.ended(ctx, "--label", "crawl=shop"); err != nil {
		return err
	}
	ids, err := d.ended(ctx, "--worker", "scrape-defer")
	if err != nil {
		return err
	}
	slices.Reverse(ids) // the first one started the others
	for _, id := range ids[1:] {
		if err := d.jobhost(ctx, "job", "result", id); err != nil {
			return err
		}
	}
	return nil
}

// playIngest submits a job in parts that begins a little later, and one that waits
// for all of its tasks, and watches the states until then.
func playIngest(ctx context.Context, d *demo) error {
	for _, args := range [][]string{
		{"submit", "ingest", "--id", "march", "--tasks", "8", "--delay", "1s"},
		{"submit", "publish", "march", "--id", "report"},
		{"state", "watch", "march", "--tag", "export", "--until", "finished"},
		{"state", "get", "march"},
		{"job", "watch", "report"},
		{"job", "result", "report"},
	} {
		if err := d.jobhost(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// playChat has one terminal watch a room, and two others write to it.
func playChat(ctx context.Context, d *demo) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var read string
	var reader sync.WaitGroup
	reader.Go(func() {
		var err error
		if read, err = d.quiet(ctx, "fiber", "watch", "lobby", "--replay"); err != nil {
			stop(err)
		}
	})
	defer reader.Wait()
	if err := d.watched(ctx, "lobby"); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"fiber", "ls"},
		{"fiber", "send", "lobby", "ann: hello?"},
		{"fiber", "send", "lobby", "bob: I can read you", "ann: and I you"},
		{"fiber", "send", "lobby", "/who"},
		{"fiber", "send", "lobby", "/close"},
	} {
		if err := d.jobhost(ctx, args...); err != nil {
			return err
		}
	}
	reader.Wait()
	fmt.Fprintf(d.stdout, "$ jobhost fiber watch lobby --replay    # in a terminal of its own, all the time\n%s\n", read)
	return d.jobhost(ctx, "fiber", "status", "lobby")
}

// watched waits until a fiber has a watcher.
func (d *demo) watched(ctx context.Context, id string) error {
	for {
		text, err := d.quiet(ctx, "fiber", "status", id, "-o", "json")
		if err != nil {
			return err
		}
		var fiber struct{ Subscribers int }
		if err := json.Unmarshal([]byte(text), &fiber); err != nil {
			return fmt.Errorf("read the status of fiber %s: %w", id, err)
		}
		if fiber.Subscribers > 0 {
			return nil
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// ended waits until all jobs that ls lists have ended, and returns their ids,
// newest first. The job that follows the end of another one is listed at once.
func (d *demo) ended(ctx context.Context, filter ...string) (ids []string, err error) {
	for {
		text, err := d.quiet(ctx, append([]string{"job", "ls", "--all", "-o", "json"}, filter...)...)
		if err != nil {
			return nil, err
		}
		ids = nil
		open := false
		for line := range strings.Lines(text) {
			var job struct{ ID, State string }
			if err := json.Unmarshal([]byte(line), &job); err != nil {
				return nil, fmt.Errorf("read the list of jobs: %w", err)
			}
			ids = append(ids, job.ID)
			open = open || !slices.Contains([]string{"succeeded", "dead", "cancelled"}, job.State)
		}
		if !open {
			return ids, nil
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}
