// Command csvstats summarizes the columns of a CSV file: their types, the
// number of values and their range. It knows nothing of jobhost: like any
// command it reads its standard input, writes to its standard output, reports
// errors on its standard error and exits with a code.
package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"unicode/utf8"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the command. It returns the exit code: 0, 1 for unreadable input, 2 for wrong flags.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("csvstats", flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, "write JSON instead of a table")
	separator := flags.String("d", ",", "the `character` between fields")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	comma, size := utf8.DecodeRuneInString(*separator)
	if size == 0 || size != len(*separator) {
		_, _ = fmt.Fprintf(stderr, "csvstats: -d %q is not one character\n", *separator)
		return 2
	}
	r := csv.NewReader(bufio.NewReader(stdin))
	r.Comma, r.ReuseRecord = comma, true
	columns, err := summarise(r)
	if err == nil {
		err = write(stdout, columns, *asJSON)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "csvstats:", err)
		return 1
	}
	return 0
}

func write(w io.Writer, columns []column, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(columns)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "COLUMN\tKIND\tFILLED\tEMPTY\tLEAST\tMOST\tMEAN")
	for _, c := range columns {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", c.Name, c.Kind, c.Filled, c.Empty, c.Least, c.Most, c.Mean)
	}
	return t.Flush() // which returns earlier write errors
}
