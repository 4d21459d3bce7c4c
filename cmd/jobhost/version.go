package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost/internal/version"
)

func newVersionCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: `  jobhost version`,
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			info := version.Get()
			if e.wantsJSON() {
				return e.json(struct {
					Version  string `json:"version"`
					Revision string `json:"revision,omitempty"`
					Go       string `json:"go"`
				}{info.Version, info.Revision, info.Go})
			}
			_, err := fmt.Fprintln(e.stdout, info)
			return err
		},
	}
}
