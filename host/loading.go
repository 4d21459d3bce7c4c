package host

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
)

// loading is which plugins are being loaded, for those who wait for them. Compiling a large
// one takes many seconds.
type loading struct {
	mu    sync.Mutex // protects all below
	total int        // workers to load
	done  int        // of them, well or not
	since map[string]time.Time
}

// expect begins a round of loads.
func (l *loading) expect(total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total, l.done, l.since = total, 0, map[string]time.Time{}
}

// begin notes that the plugin of a worker is being loaded, until end is called.
func (l *loading) begin(worker string) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since[worker] = time.Now()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.since, worker)
		l.done++
	}
}

// progress returns how many workers are loaded, of how many, and lists those that are being
// loaded with the time that each has taken so far, such as "csvstats (12s), wordcount (3s)".
func (l *loading) progress() (done, total int, names string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var busy []string
	for worker, since := range l.since {
		busy = append(busy, fmt.Sprintf("%s (%v)", worker, time.Since(since).Truncate(time.Second)))
	}
	slices.Sort(busy)
	return l.done, l.total, strings.Join(busy, ", ")
}

// String says how far it is; "" when no round has begun.
func (l *loading) String() string {
	counts := l.counts()
	if _, _, names := l.progress(); names != "" {
		return counts + ", compiling " + names
	}
	return counts
}

// counts is String without names, for those who may not read them.
func (l *loading) counts() string {
	done, total, _ := l.progress()
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d workers loaded", done, total)
}

// loadQuiet is how often the log says what is still being loaded.
const loadQuiet = 3 * time.Second

// tell logs what is still being loaded, again and again until stop is called.
func (l *loading) tell(logger *slog.Logger) (stop func()) {
	ended := make(chan struct{})
	var teller sync.WaitGroup
	teller.Go(func() {
		tick := time.NewTicker(loadQuiet)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			done, total, names := l.progress()
			logger.Info("still compiling plugins", logkey.Worker, names, "loaded", done, logkey.Count, total)
		}
	})
	return func() {
		close(ended)
		teller.Wait()
	}
}
