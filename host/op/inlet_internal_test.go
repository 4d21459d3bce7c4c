package op

import (
	"errors"
	"testing"
)

// TestInletClosedWithAValueInHand checks that the end is not told while one of the
// Inlet's goroutines has received a value and not yet passed it on.
func TestInletClosedWithAValueInHand(t *testing.T) {
	t.Parallel()
	ch := make(chan int)
	close(ch)
	in := NewInlet(ch)
	in.standing = 1
	if _, ok, err := TryPerform(in.Recv()); ok || err != nil {
		t.Errorf("got %t, %v", ok, err)
	}
	in.standing = 0
	if _, ok, err := TryPerform(in.Recv()); !ok || !errors.Is(err, ErrClosed) {
		t.Errorf("got %t, %v", ok, err)
	}
}
