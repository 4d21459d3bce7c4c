package host

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLoadingSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l loading
		check := func(want string) {
			t.Helper()
			if got := l.String(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		check("")
		l.expect(3)
		check("0 of 3 workers loaded")
		endTable := l.begin("csvstats")
		time.Sleep(4 * time.Second)
		endWords := l.begin("wordcount")
		time.Sleep(3 * time.Second)
		check("0 of 3 workers loaded, compiling csvstats (7s), wordcount (3s)")
		endTable()
		check("1 of 3 workers loaded, compiling wordcount (3s)")
		endWords()
		check("2 of 3 workers loaded")
	})
}

// A load that takes long is named in the log while it lasts, and a short one isn't.
func TestSlowLoadsAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l loading
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, nil))
		l.expect(2)
		stop := l.tell(logger)
		l.begin("vowels")()
		time.Sleep(loadQuiet - 1)
		stop()
		if out.Len() > 0 {
			t.Errorf("a short load is logged: %s", &out)
		}
		stop = l.tell(logger)
		end := l.begin("csvstats")
		time.Sleep(2*loadQuiet + 1)
		end()
		stop()
		if got := out.String(); strings.Count(got, "still compiling plugins") != 2 || !strings.Contains(got, `worker="csvstats (6s)" loaded=1 count=2`) {
			t.Errorf("got %s", got)
		}
	})
}
