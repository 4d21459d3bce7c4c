package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime"
)

// featureFlag adds the flag --feature.
func featureFlag(cmd *cobra.Command, p *[]string) {
	cmd.Flags().StringArrayVar(p, "feature", nil,
		"what the module may use although it is off by default, as a `NAME`: "+strings.Join(runtime.Features(), ", ")+"; may be given several times")
}

// allowFeatures adds to what a worker's plugin may use.
func allowFeatures(w *host.Worker, names []string) error {
	for _, name := range names {
		if !slices.Contains(runtime.Features(), name) {
			return unknownFeature(name)
		}
	}
	if len(names) > 0 && w.ABI == runtime.ABIProcess {
		return usagef("--feature is for modules; a native plugin has no sandbox")
	}
	w.Features = slices.Concat(w.Features, names)
	return nil
}

func unknownFeature(name string) error {
	e := &jobhost.Error{
		Code: jobhost.CodeInvalid, Message: fmt.Sprintf("--feature %q is not a feature", name),
		Hint: "the features are " + strings.Join(runtime.Features(), ", "),
	}
	if near := text.Nearest(name, runtime.Features()); near != "" {
		e.Hint = "did you mean " + near + "?"
	}
	return asUsage(e)
}

// without returns the names of which the others have none.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// featuresText is what a manifest says to allow features.
func featuresText(names []string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = fmt.Sprintf("%q", name)
	}
	return "features = [" + strings.Join(texts, ", ") + "]"
}
