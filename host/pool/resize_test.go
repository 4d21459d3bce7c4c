package pool_test

import (
	"strconv"
	"sync"
	"testing"
)

// A pool that is scaled keeps its sandboxes, runs what waits on new slots at
// once, and ends those that are too many after their tasks.
func TestResize(t *testing.T) {
	t.Parallel()
	one := newNumbered(t, 1)
	f := setupSwap(t, versionOf(one, 1), "a", "b", "c", "d")
	f.submit("a", "hold")
	<-one.entered
	f.submit("b", "hold")
	f.submit("c", "hold")
	f.resize(3)
	<-one.entered
	<-one.entered
	if f.Busy() != 3 || f.Size() != 3 {
		t.Errorf("%d of %d slots are busy, want 3 of 3", f.Busy(), f.Size())
	}
	f.resize(1)
	if f.Busy() != 3 || f.Size() != 1 {
		t.Errorf("%d of %d slots are busy, want the 3 that run and 1", f.Busy(), f.Size())
	}
	close(one.resume)
	for _, id := range []string{"a", "b", "c"} {
		f.result(id)
	}
	f.submit("d", "")
	f.result("d")
	if n := one.instances.Load(); n < 1 || n > 3 {
		t.Errorf("there are %d sandboxes", n)
	}
	f.Close()
	if err := f.Resize(2); err == nil {
		t.Error("a closed pool was scaled")
	}
}

// A pool that is resized all the time loses no task, whatever else happens to it.
func TestResizeHammer(t *testing.T) {
	t.Parallel()
	var ids []string
	for i := range 300 {
		ids = append(ids, strconv.Itoa(i))
	}
	one, two := newNumbered(t, 1), newNumbered(t, 2)
	f := setupSwap(t, versionOf(one, 2), ids...)
	var work sync.WaitGroup
	for part := range 3 {
		work.Go(func() {
			for i := part; i < len(ids); i += 3 {
				f.submit(ids[i], "")
			}
		})
	}
	work.Go(func() {
		for i := range 100 {
			f.resize(1 + i%5)
		}
	})
	work.Go(func() { f.swap(versionOf(two, 3)) })
	work.Wait()
	for _, id := range ids {
		f.result(id)
	}
}

func (f *swapFixture) resize(slots int) {
	f.t.Helper()
	if err := f.Resize(slots); err != nil {
		f.t.Error(err)
	}
}
