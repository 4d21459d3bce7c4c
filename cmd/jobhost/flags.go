package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// choice is a flag with a few possible values. It implements pflag.Value.
type choice struct {
	value string
	names []string
	near  map[string]string // other names, and what to use for them
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "string" }

func (c *choice) Set(s string) error {
	if near := c.near[strings.ToLower(s)]; near != "" {
		return fmt.Errorf("use %s", near)
	}
	if !slices.Contains(c.names, s) {
		return fmt.Errorf("use %s", strings.Join(c.names, ", "))
	}
	c.value = s
	return nil
}

// duration is a flag that reads durations as manifests do: "250ms", "7d".
type duration time.Duration

func (d *duration) Type() string { return "duration" }

func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return jobhost.Duration(*d).String()
}

func (d *duration) Set(s string) error {
	parsed, err := jobhost.ParseDuration(s)
	switch {
	case err != nil:
		return err
	case parsed < 0:
		return fmt.Errorf("a duration below 0 is not possible here")
	}
	*d = duration(parsed)
	return nil
}

// forever is what --wait without a duration means.
const forever = "forever"

// waitFlag is the flag --wait[=DURATION].
type waitFlag struct {
	given bool
	most  duration // 0 = forever
}

func (p *waitFlag) Type() string { return "duration" }

func (p *waitFlag) String() string {
	if p.given && p.most == 0 {
		return forever
	}
	return p.most.String()
}

func (p *waitFlag) Set(s string) error {
	if s == forever {
		p.given, p.most = true, 0
		return nil
	}
	if err := p.most.Set(s); err != nil {
		return err
	}
	if p.most == 0 {
		return fmt.Errorf("a wait of 0 is not possible; leave --wait out")
	}
	p.given = true
	return nil
}

// instant is a flag for a time: RFC 3339, or with past how long ago it was.
type instant struct {
	time time.Time
	text string
	now  func() time.Time // nil = only RFC 3339
}

func (i *instant) Type() string   { return "time" }
func (i *instant) String() string { return i.text }

func (i *instant) Set(s string) error {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil && i.now != nil {
		var d duration
		if d.Set(s) != nil {
			return fmt.Errorf(`use a time such as "2026-02-03T15:04:05Z", or how long ago: "90m", "7d"`)
		}
		t, err = i.now().Add(-time.Duration(d)), nil
	}
	if err != nil {
		return fmt.Errorf(`use a time such as "2026-02-03T15:04:05Z"`)
	}
	i.time, i.text = t, s
	return nil
}

// jobState is a flag that names a state of jobs; zero = any.
type jobState jobhost.State

func (s *jobState) Type() string { return "string" }

func (s *jobState) String() string {
	if *s == 0 {
		return ""
	}
	return jobhost.State(*s).String()
}

func (s *jobState) Set(name string) error {
	parsed, err := jobhost.ParseState(name)
	if err != nil {
		return fmt.Errorf("%s", jobhost.HintOf(err))
	}
	*s = jobState(parsed)
	return nil
}

func stateNames() []string {
	var names []string
	for _, s := range jobhost.States() {
		names = append(names, s.String())
	}
	return names
}

func priorityNames() []string {
	names := make([]string, jobhost.Levels)
	for level := range names {
		names[level] = jobhost.PriorityAt(level).String()
	}
	return names
}

// complete offers values of a flag to the shell.
func complete(cmd *cobra.Command, flag string, values ...string) {
	// The error is for flags that don't exist, which the tests of the help texts would show.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// exactly, atLeast and between check the number of arguments; names say what they are.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fmt.Errorf("%s is missing", names[len(args)])
		}
		if len(args) > len(names) {
			return fmt.Errorf("%q is one argument too many", args[len(names)])
		}
		return nil
	}
}

func between(low int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= low && len(args) < len(names) {
			return nil
		}
		return exactly(names...)(cmd, args)
	}
}
