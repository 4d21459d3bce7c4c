package buildcache

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// TestHammerFile: whoever asks for a content that is being built waits for it, and it is built once; a build that
// fails leaves nothing behind.
func TestHammerFile(t *testing.T) {
	t.Parallel()
	dir, key := t.TempDir(), "4711471147114711471147114711471147114711471147114711471147114711"
	if _, err := file(dir, key, func(string) error { return os.ErrInvalid }); err == nil {
		t.Fatal("a build that failed has a content")
	}
	var builds atomic.Int32
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			content, err := file(dir, key, func(out string) error {
				builds.Add(1)
				return os.WriteFile(out, []byte("content"), 0o600)
			})
			if err != nil || string(content) != "content" {
				t.Errorf("%q, %v", content, err)
			}
		})
	}
	all.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("it was built %d times", n)
	}
}
