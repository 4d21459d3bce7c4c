package test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// TestScheduleSurvivesKills kills a host again and again while a schedule fires
// each second, and wants each tick to have made one job.
func TestScheduleSurvivesKills(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write("manifest.toml", []byte(s.manifest()+`
[[schedule]]
name = "beat"
every = "1s"
worker = "echo"
payload = "tick"
catch_up = "all"
overlap = "allow"
`))
	var p *process
	for _, life := range []time.Duration{1100 * time.Millisecond, 50 * time.Millisecond, 700 * time.Millisecond, 0} {
		p = s.start()
		ctx, cancel := context.WithTimeout(t.Context(), life)
		<-ctx.Done()
		cancel()
		p.kill()
	}
	p = s.start()
	got, err := p.Schedule(t.Context(), "beat")
	if err != nil || got.LastTick == nil {
		t.Fatalf("got %+v, %v", got, err)
	}
	if job, err := p.Wait(t.Context(), got.LastJob); err != nil || job.State != jobhost.Succeeded {
		t.Fatalf("the last job is %+v, %v", job, err)
	}
	page, err := p.Jobs(t.Context(), jobhost.Filter{Limit: jobhost.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	ticks := map[string]bool{}
	var first, last time.Time
	for i := range page.Jobs {
		job := &page.Jobs[i]
		tick := job.Labels[jobhost.LabelTick]
		if !strings.HasPrefix(job.ID, "beat.") || job.Labels[jobhost.LabelSchedule] != "beat" || ticks[tick] {
			t.Errorf("unexpected job %+v", job)
		}
		ticks[tick] = true
		at, err := time.Parse(time.RFC3339, tick)
		if err != nil {
			t.Fatal(err)
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	if want := int(last.Sub(first)/time.Second) + 1; len(ticks) != want || want < 2 {
		t.Errorf("%d ticks made jobs between %v and %v, want %d", len(ticks), first, last, want)
	}
}
