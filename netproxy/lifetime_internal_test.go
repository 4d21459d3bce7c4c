package netproxy

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	errWhy   = errors.New("why")
	errOther = errors.New("other")
)

// A lifetime ends once, for the first reason, and with it everything derived from it.
func TestLifetime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]func(l *lifetime, parent context.CancelCauseFunc){
			"by itself":       func(l *lifetime, _ context.CancelCauseFunc) { l.end(errWhy); l.end(errOther) },
			"by who asked":    func(l *lifetime, parent context.CancelCauseFunc) { parent(errWhy) },
			"by both at once": func(l *lifetime, parent context.CancelCauseFunc) { l.end(errWhy); parent(errOther) },
		} {
			type key struct{}
			parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
			l := &lifetime{}
			l.begin(parent, parent)
			first, done1 := context.WithCancel(l)
			second, done2 := context.WithTimeout(l, time.Hour)
			dropped := 0
			stop := l.AfterFunc(func() { dropped++ })
			if !stop() || stop() {
				t.Errorf("%s: stop does not report whether the function was dropped", name)
			}
			if l.Err() != nil || l.why() != nil || first.Err() != nil || l.Value(key{}) != "value" {
				t.Errorf("%s: it has ended before: %v, %v", name, l.Err(), l.why())
			}
			end(l, cancel)
			synctest.Wait()
			if !errors.Is(l.why(), errWhy) || !errors.Is(l.Err(), context.Canceled) {
				t.Errorf("%s: it ended with %v, %v", name, l.why(), l.Err())
			}
			if first.Err() == nil || second.Err() == nil || dropped != 0 {
				t.Errorf("%s: what was derived goes on: %v, %v, %d", name, first.Err(), second.Err(), dropped)
			}
			late, done3 := context.WithCancel(l)
			synctest.Wait()
			if late.Err() == nil {
				t.Errorf("%s: what is derived after the end goes on", name)
			}
			for _, done := range []context.CancelFunc{done1, done2, done3, func() { cancel(nil) }} {
				done()
			}
		}
	})
}

func TestLifetimeHammer(t *testing.T) {
	t.Parallel()
	for range 200 {
		parent, cancel := context.WithCancelCause(t.Context())
		l := &lifetime{}
		l.begin(parent, parent)
		var work sync.WaitGroup
		for range 4 {
			work.Go(func() {
				ctx, done := context.WithCancel(l)
				defer done()
				l.AfterFunc(func() {})()
				<-ctx.Done()
			})
		}
		work.Go(func() { l.end(errWhy) })
		work.Go(func() { cancel(errOther) })
		work.Wait()
		if l.why() == nil {
			t.Fatal("it has no reason")
		}
	}
}

// The context of a handler ends after its timeout, and when the handler has returned.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := &lazyDeadline{until: began.Add(time.Minute)}
		if p.Err() != nil {
			t.Errorf("it has ended: %v", p.Err())
		}
		<-p.Done()
		if time.Since(began) != time.Minute || !errors.Is(p.Err(), context.DeadlineExceeded) {
			t.Errorf("it ended after %v with %v", time.Since(began), p.Err())
		}
		p.end()
		for _, looked := range []bool{false, true} {
			p := &lazyDeadline{until: time.Now().Add(time.Minute)}
			if looked {
				_ = p.Done()
			}
			p.end()
			<-p.Done()
			if !errors.Is(p.Err(), context.Canceled) {
				t.Errorf("after the handler: %v", p.Err())
			}
		}
	})
}
