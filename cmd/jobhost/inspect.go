package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost/runtime"
)

// inspection is what `worker inspect` tells.
type inspection struct {
	File      string   `json:"file"`
	SHA256    string   `json:"sha256"`
	Size      int      `json:"size"`
	ABI       string   `json:"abi"`
	Entry     string   `json:"entry"`
	Entries   []string `json:"entries"`
	Imports   []string `json:"imports"`
	MemoryMin uint64   `json:"memory_min"`
	MemoryMax uint64   `json:"memory_max,omitempty"`
}

func newWorkerInspectCommand(e *env) *cobra.Command {
	var entry string
	cmd := &cobra.Command{
		Use:   "inspect FILE.wasm",
		Short: "Tell what a module exports and what it asks of the host",
		Long: `Tell what a module exports and what it asks of the host.

The imports are the list of what the module can do beyond computing: a call that
is not imported cannot be made.`,
		Example: "  jobhost worker inspect plugins/examples/vowels/vowels.wasm",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			data, err := readModule(e.path(args[0]))
			if err != nil {
				return err
			}
			engine, err := openUserEngine()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, engine.Close(cmd.Context())) }()
			plugin, err := engine.Load(cmd.Context(), runtime.Source{Worker: "inspected", Path: args[0], Bytes: data, Entry: entry})
			if err != nil {
				return err
			}
			return e.printInspection(args[0], plugin.Info())
		},
	}
	cmd.Flags().StringVar(&entry, "entry", "", "the export that will be called (default: the ABI's own)")
	return cmd
}

func (e *env) printInspection(file string, info runtime.Info) error {
	i := inspection{
		File: file, SHA256: info.SHA256, Size: info.Size, ABI: info.ABI, Entry: info.Entry,
		Entries: orEmpty(info.Entries), Imports: orEmpty(info.Imports), MemoryMin: info.MemoryMin, MemoryMax: info.MemoryMax,
	}
	if e.wantsJSON() {
		return e.json(i)
	}
	row := func(name, value string) { _, _ = fmt.Fprintf(e.stdout, "%-9s%s\n", name, printable(value)) }
	row("file", i.File)
	row("sha256", i.SHA256)
	row("size", fmt.Sprintf("%d bytes", i.Size))
	row("abi", i.ABI)
	row("memory", memoryText(i.MemoryMin, i.MemoryMax))
	row("entries", strings.Join(i.Entries, ", ")+" (default "+i.Entry+")")
	if len(i.Imports) == 0 {
		row("imports", "none: it can only compute")
	}
	for n, name := range i.Imports {
		label := ""
		if n == 0 {
			label = "imports"
		}
		row(label, name)
	}
	return nil
}

func memoryText(low, high uint64) string {
	text := fmt.Sprintf("%d KiB", low>>10)
	if high > 0 {
		text += fmt.Sprintf(", at most %d KiB", high>>10)
	}
	return text
}

// orEmpty makes nil an empty list, which is [] in JSON rather than null.
func orEmpty(list []string) []string { return append([]string{}, list...) }
