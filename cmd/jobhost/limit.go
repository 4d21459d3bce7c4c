package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/runtime"
)

// limitFlags are limits of the worker, by their keys in a manifest.
type limitFlags map[string]*string

// limitUsages say what the flags for limits are, by the keys.
var limitUsages = map[string]string{
	"memory":         "linear memory that the module may have, as a `SIZE` such as 256MiB (default: the worker's, or 64MiB)",
	"compile_memory": "memory that compiling the module may take, by an estimate, as a `SIZE` (default: the worker's, or 1GiB)",
	"output":         "the largest result of one input, as a `SIZE` (default: the worker's, or 1MiB)",
}

// limitFlag is the name of the flag for a key.
func limitFlag(key string) string {
	if key == "output" {
		return "output-limit" // --output is how commands print
	}
	return strings.ReplaceAll(key, "_", "-")
}

// newLimitFlags adds the flags for some keys.
func newLimitFlags(cmd *cobra.Command, keys ...string) limitFlags {
	f := limitFlags{}
	for _, key := range keys {
		f[key] = cmd.Flags().String(limitFlag(key), "", limitUsages[key])
	}
	return f
}

// given reports whether a limit was set.
func (f limitFlags) given(key string) bool { return f[key] != nil && *f[key] != "" }

// apply sets the limits of a worker.
func (f limitFlags) apply(w *host.Worker) error {
	for key := range f {
		if !f.given(key) {
			continue
		}
		if key == "compile_memory" && w.ABI == runtime.ABIProcess {
			return usagef("--%s is for modules; a native plugin is compiled already", limitFlag(key))
		}
		if err := manifest.SetLimit(&w.Limits, key, *f[key]); err != nil {
			return asUsage(&jobhost.Error{Code: jobhost.CodeInvalid, Message: fmt.Sprintf("--%s: %v", limitFlag(key), err), Hint: jobhost.HintOf(err)})
		}
	}
	return nil
}

// settingHint is a hint that tells what to say in a manifest.
var settingHint = regexp.MustCompile(`^set (\w+) = "([^"]+)" for the worker`)

// orByFlag changes the hint of a module that was refused because of a setting, if
// it is a file: that has no manifest to say it, but the command has a flag.
func orByFlag(err error, file bool) error {
	e, ok := errors.AsType[*jobhost.Error](err)
	if !ok || !file {
		return err
	}
	switch e.Field {
	case "features":
		e.Hint = "allow it by --feature " + strings.Join(runtime.Features(), " --feature ") + ", or build it without (-mno-simd128)"
	case "memory", "compile_memory":
		e.Hint = settingHint.ReplaceAllStringFunc(e.Hint, func(hint string) string {
			part := settingHint.FindStringSubmatch(hint)
			return "allow it by --" + limitFlag(part[1]) + " " + part[2]
		})
	case "entry":
		e.Hint = strings.Replace(e.Hint, "set the worker's entry to", "say which by --entry:", 1)
	}
	return err
}
