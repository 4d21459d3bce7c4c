package hub_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hub"
)

func eventHub() *hub.Hub[jobhost.Event] {
	return hub.NewSized(hub.Options{Replay: 4096}, func(e jobhost.Event) int { return len(e.Data) })
}

// publish is how the host publishes: the value carries its number.
func publish(h *hub.Hub[jobhost.Event], e jobhost.Event) {
	h.PublishFunc(e.Job, func(seq uint64) jobhost.Event {
		e.Seq = seq
		return e
	})
}

func TestPublishAllocatesNothing(t *testing.T) {
	h := eventHub()
	waiting := h.Subscribe(hub.Query{Key: "other"})
	defer waiting.Close()
	if n := testing.AllocsPerRun(1000, func() { publish(h, jobhost.Event{Job: "job"}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, keyed := range []int{0, 256} {
		b.Run(fmt.Sprintf("keyed=%d", keyed), func(b *testing.B) {
			h := eventHub()
			for i := range keyed {
				h.Subscribe(hub.Query{Key: fmt.Sprint("waiting-", i)}) // ends with the hub
			}
			b.ReportAllocs()
			for b.Loop() {
				publish(h, jobhost.Event{Job: "job"})
			}
		})
	}
}

func BenchmarkPublishAndRead(b *testing.B) {
	h := eventHub()
	s := h.Subscribe(hub.Query{Key: "job"})
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		publish(h, jobhost.Event{Job: "job"})
		if _, err := s.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSubscribe(b *testing.B) {
	h := eventHub()
	b.ReportAllocs()
	for b.Loop() {
		h.Subscribe(hub.Query{Key: "job"}).Close()
	}
}

// BenchmarkWait is what a submit that waits costs the hub.
func BenchmarkWait(b *testing.B) {
	h := eventHub()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			s := h.Subscribe(hub.Query{Key: "job"})
			publish(h, jobhost.Event{Job: "job", Kind: jobhost.EventEnded})
			if _, err := s.Next(b.Context()); err != nil {
				b.Error(err)
			}
			s.Close()
		}
	})
}

// BenchmarkHandOver is a reader that waits for each item.
func BenchmarkHandOver(b *testing.B) {
	there, back := eventHub(), eventHub()
	in, out := there.Subscribe(hub.Query{Key: "job"}), back.Subscribe(hub.Query{Key: "job"})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			item, err := in.Next(context.Background())
			if err != nil {
				return
			}
			publish(back, item.Value)
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		publish(there, jobhost.Event{Job: "job"})
		if _, err := out.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	there.Close(nil)
	<-done
}
