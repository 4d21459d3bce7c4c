package hub_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jobhost/jobhost/host/hub"
)

// A reader that was away asks for what it missed, and gets an error if the hub
// no longer has all of it.
func Example_replay() {
	h := hub.New[string](hub.Options{Replay: 2})
	for _, word := range []string{"one", "two", "three"} {
		h.Publish("words", word)
	}
	words := h.Subscribe(hub.Query{Key: "words", Replay: true})
	defer words.Close()
	h.Publish("words", "four")
	h.Close(nil)

	for {
		item, err := words.Next(context.Background())
		switch {
		case errors.Is(err, hub.ErrGap):
			fmt.Println("gap:", err)
			continue
		case err != nil:
			fmt.Println("end:", err)
			return
		}
		fmt.Println(item.Seq, item.Value)
	}
	// Output:
	// gap: items 1 to 1 are no longer remembered
	// 2 two
	// 3 three
	// 4 four
	// end: the subscription is closed
}
