package expr

import (
	"fmt"
	"sync"
	"testing"
)

// TestHammer compiles and runs the same few expressions from many goroutines.
func TestHammer(t *testing.T) {
	t.Parallel()
	env := setup(t)
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 60 {
				source := fmt.Sprintf(`{"n": input.size + %d, "keys": input.map(k, k).filter(k, k.matches("^[a-m]")), "b": steps.fetch.output.body}`, (g+i)%5)
				p, err := env.Compile(source, Place{Kind: Output})
				if err != nil {
					t.Error(err)
					return
				}
				got, err := p.JSON(t.Context(), data())
				want := fmt.Sprintf(`{"b":"héllo","keys":["free"],"n":%d}`, 3+(g+i)%5)
				if err != nil || string(got) != want {
					t.Errorf("got %s, %v, want %s", got, err, want)
					return
				}
			}
		})
	}
	group.Wait()
}
