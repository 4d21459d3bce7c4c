package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// maxInput bounds one input of exec, in bytes.
const maxInput = 256 << 20

// inputs yields what exec is given, one after the other.
type inputs struct {
	env   *env
	flags *execFlags
	args  []string
}

// input is one of them; name says where it came from.
type input struct {
	name string
	data []byte
}

// total is how many there will be; 0 = that is not known.
func (in *inputs) total() int {
	if in.flags.lines {
		return 0
	}
	return len(in.args)
}

// typed reports whether they are typed on a terminal.
func (in *inputs) typed() bool {
	return !in.flags.text && slices.Contains(in.args, "-") && in.env.isTerminal(in.env.stdin)
}

// each calls f with every input until f returns false. An input that can't be
// read is an error after those before it.
func (in *inputs) each(f func(input) bool) error {
	for _, arg := range in.args {
		switch {
		case in.flags.text:
			if !f(input{arg, []byte(arg)}) {
				return nil
			}
		default:
			more, err := in.file(arg, f)
			if err != nil || !more {
				return err
			}
		}
	}
	return nil
}

func (in *inputs) file(arg string, f func(input) bool) (more bool, err error) {
	reader := in.env.stdin
	if arg != "-" {
		file, err := os.Open(in.env.path(arg))
		if err != nil {
			return false, fmt.Errorf("read input: %w", err)
		}
		defer file.Close()
		reader = file
	}
	if in.flags.lines {
		return lines(arg, reader, f)
	}
	data, err := io.ReadAll(io.LimitReader(reader, maxInput+1))
	if err != nil {
		return false, fmt.Errorf("read input %s: %w", arg, err)
	}
	if len(data) > maxInput {
		return false, fmt.Errorf("read input %s: it is larger than %d bytes", arg, maxInput)
	}
	return f(input{arg, data}), nil
}

func lines(name string, reader io.Reader, f func(input) bool) (more bool, err error) {
	scanner := bufio.NewScanner(reader)
	scanner.Buffer(make([]byte, 64<<10), maxInput)
	for n := 1; scanner.Scan(); n++ {
		if !f(input{fmt.Sprintf("%s:%d", name, n), bytes.Clone(scanner.Bytes())}) {
			return false, nil
		}
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return false, fmt.Errorf("read input %s: a line is longer than %d bytes", name, maxInput)
	} else if err != nil {
		return false, fmt.Errorf("read input %s: %w", name, err)
	}
	return true, nil
}
