package filepayload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/filepayload"
)

// A set of one folder, compressed and encrypted.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "payloads-*")
	if err != nil {
		log.Fatal(err)
	}
	store, err := filepayload.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	set, err := payload.New(payload.Config{
		Stores:   []payload.Named{{Name: "local", Store: store}},
		Compress: true,
		Keys:     []payload.Key{{ID: "2026-11", Secret: []byte(strings.Repeat("k", payload.SecretBytes))}},
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	ref, err := set.Put(ctx, strings.NewReader(strings.Repeat("to be or not to be ", 1000)), 1<<20)
	if err != nil {
		log.Fatal(err)
	}
	again, err := payload.ParseRef(ref.String()) // what is kept of it
	if err != nil {
		log.Fatal(err)
	}
	r, err := set.Open(ctx, again)
	if err != nil {
		log.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		log.Fatal(err)
	}
	_ = errors.Join(r.Close(), set.Close(), os.RemoveAll(dir))
	fmt.Println(len(data), "bytes, sealed with", again.Sealed)
	// Output: 19000 bytes, sealed with 2026-11
}
