package main

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
)

// TestSynonyms: words of other programs lead to the command, which is there.
func TestSynonyms(t *testing.T) {
	t.Parallel()
	for group, words := range meant {
		for word, to := range words {
			line := strings.Fields(strings.TrimPrefix(group, "jobhost"))
			if cmd, rest, err := testRoot().Find(append(line, strings.Fields(to)...)); err != nil || len(rest) > 0 || cmd.CommandPath() != group+" "+to {
				t.Errorf("%s %s means %s, which is no command: %v", group, word, to, err)
			}
			c := newConsole(t, struct{ jobhost.Server }{})
			want := "did you mean " + group + " " + to + "?"
			if code := c.run(t, append(line, word)...); code != exitUsage || !strings.Contains(c.errOut.String(), want) {
				t.Errorf("%s %s: exit code %d, stderr %q, want %q", group, word, code, c.errOut.String(), want)
			}
		}
	}
}
