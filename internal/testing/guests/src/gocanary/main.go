//go:build wasip1

// A WASI command in Go that leaves marks wherever a program can, for tests that
// the next job finds none: see main for what standard input may ask for.
package main

import (
	crand "crypto/rand"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"os"
	"strings"
)

// Marks in the data of the module: in bytes that are initialised, and in some
// that are zero.
var (
	static = []byte("pristine")
	zero   [1 << 20]byte
)

// kept are files that are never closed.
var kept []*os.File

func main() {
	task, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	switch string(task) {
	case "plant":
		fmt.Print(plant())
	case "look":
		fmt.Print(look())
	case "random":
		fmt.Print(random())
	default:
		// The text is the mark, which ends up in many places.
		fmt.Print(strings.ToUpper(string(task)))
	}
}

// plant leaves marks in memory, the environment, the working folder and
// descriptors.
func plant() string {
	copy(static, "planted!")
	for i := range zero {
		zero[i] = '!'
	}
	check(os.Setenv("CANARY", "planted"))
	check(os.Chdir("/data/folder"))
	for range 20 {
		file, err := os.Open("/data/file")
		check(err)
		kept = append(kept, file)
	}
	check(os.Stderr.Close())
	return "planted"
}

// look lists the marks that it finds.
func look() string {
	var found []string
	note := func(mark string, there bool) {
		if there {
			found = append(found, mark)
		}
	}
	note("static data", string(static) != "pristine")
	note("zeros", string(zero[:]) != string(make([]byte, len(zero))))
	note("environment", os.Getenv("CANARY") != "")
	dir, err := os.Getwd()
	check(err)
	note("working folder", dir == "/data/folder")
	file, err := os.Open("/data/file")
	check(err)
	// Standard streams and the mount come before it.
	note("descriptors", file.Fd() > 5)
	_, err = os.Stderr.WriteString("still open\n")
	note("standard error", err != nil)
	return "found " + strings.Join(found, ", ")
}

// random draws from all random generators that a program has.
func random() string {
	var key [8]byte
	_, err := crand.Read(key[:])
	check(err)
	return fmt.Sprintf("%x %x %x", key, rand.Uint64(), maphash.Comparable(maphash.MakeSeed(), 1))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
