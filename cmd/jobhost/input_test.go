package main

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func readLines(r io.Reader, most int) (lines []string, err error) {
	l := newLineReader(r, most)
	for {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
}

func TestLineReader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3<<20) // longer than the buffer
	for _, test := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"one without end", "a", []string{"a"}},
		{"one with end", "a\n", []string{"a"}},
		{"empty lines", "\n\na\n\n", []string{"", "", "a", ""}},
		{"line ends of Windows", "a\r\nb\r\r\n\r\n", []string{"a", "b\r", ""}},
		{"a lone carriage return stays", "a\rb\nc\r", []string{"a\rb", "c\r"}},
		{"long", long + "\nb\n", []string{long, "b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := readLines(strings.NewReader(test.in), mostPayload)
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%.60q, %v", got, err)
			}
		})
	}
}

func TestLineReaderTooLong(t *testing.T) {
	t.Parallel()
	for _, in := range []io.Reader{strings.NewReader("four\nfiver\n"), strings.NewReader("fiver"), zeros{}} {
		if _, err := readLines(in, 4); err == nil || err.Error() != "a line is larger than 4 B" {
			t.Error(err)
		}
	}
	if got, err := readLines(strings.NewReader("four\r\n4"), 4); err != nil || len(got) != 2 {
		t.Errorf("%q, %v", got, err)
	}
}

func TestReadPayload(t *testing.T) {
	t.Parallel()
	if got, err := readPayload(strings.NewReader("four"), 4); err != nil || string(got) != "four" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := readPayload(zeros{}, 4); err == nil || err.Error() != "the payload is larger than 4 B" {
		t.Error(err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func FuzzLineReader(f *testing.F) {
	for _, s := range []string{"", "\n", "a\r\nb", "\r\n\n\r", "x\ny\nz"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines, err := readLines(iotest.OneByteReader(bytes.NewReader(data)), mostPayload)
		if err != nil {
			t.Fatal(err)
		}
		want := bytes.Count(data, []byte("\n"))
		if len(data) > 0 && data[len(data)-1] != '\n' {
			want++
		}
		if len(lines) != want {
			t.Fatalf("%d lines of %q", len(lines), data)
		}
		for _, line := range lines {
			if strings.Contains(line, "\n") {
				t.Fatalf("%q is more than a line", line)
			}
		}
	})
}
