//go:build linux && !amd64 && !arm64

package confine

import "runtime"

func filter(_ Config, r *Report) error {
	r.Missing = append(r.Missing, filterFault())
	return nil
}

func filterFault() string { return "system calls (there is no list for " + runtime.GOARCH + ")" }
