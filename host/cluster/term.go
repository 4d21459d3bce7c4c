package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/pgdb"
)

const (
	releaseTime   = 3 * time.Second // timeout of giving up a term
	leadAgainTime = time.Second     // pause after a term that ended unexpectedly
)

// terms alternates between standing by and leading, until ctx ends or Config.Lead returns an error of its own.
func (m *Member) terms(ctx context.Context) error {
	for {
		v, err := m.awaitLead(ctx)
		if err != nil {
			return err
		}
		if err := m.lead(ctx, v); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// errHandOver is the cause of giving up a term that is not over.
type errHandOver struct{ why string }

func (e errHandOver) Error() string { return "the host hands its term over: " + e.why }
func (e errHandOver) Unwrap() error { return pgdb.ErrTermOver }

// lead calls Config.Lead for a term, and gives up the term afterwards.
func (m *Member) lead(ctx context.Context, v *wonTerm) error {
	term := v.term
	m.log.Info("this host leads", "epoch", term.Epoch(), logkey.Reason, v.why)
	m.begin(ctx, v)
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	var watching sync.WaitGroup
	watching.Go(func() {
		cause := m.awaitEnd(ctx, life, term)
		own := m.withdraw() // new requests wait for the next leader
		if own != nil && cause != nil && term.Err() == nil {
			own.drain()
		}
		end(cause)
	})
	err := m.cfg.Lead(life, term)
	end(nil)
	watching.Wait()
	ofTerm := errors.Is(err, pgdb.ErrTermOver) || err != nil && term.Err() != nil
	wants := err != nil && !ofTerm && jobhost.CodeOf(err) == jobhost.CodeUnavailable // which may come back
	unexpected := term.Err() != nil
	switch {
	case unexpected:
		m.log.Warn("the term has ended", "epoch", term.Epoch(), logkey.Reason, term.Err())
	case wants:
		m.log.Error("this host can't lead now, and gives up its term", "epoch", term.Epoch(), logkey.Error, err)
	default:
		m.log.Info("this host gives up its term", "epoch", term.Epoch(), logkey.Reason, context.Cause(life))
	}
	m.finish(ctx, term)
	switch {
	case err == nil && ctx.Err() == nil && life.Err() != nil && errors.Is(context.Cause(life), context.Canceled):
		return errLifeOver
	case err != nil && !ofTerm && !wants:
		return err
	case (unexpected || wants) && ctx.Err() == nil:
		sleep(ctx, leadAgainTime)
	}
	return nil
}

var errLifeOver = errors.New("the host has ended although it was to lead")

// awaitEnd waits until a term is over or has to be given up, and returns why; nil = Config.Lead has returned by itself.
func (m *Member) awaitEnd(ctx, life context.Context, term *pgdb.Term) error {
	for {
		select {
		case <-term.Done():
			return term.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-life.Done():
			return nil
		case <-m.wakeup:
			if why := m.stepDownReason(); why != "" {
				return errHandOver{why}
			}
		}
	}
}

// begin records that this host leads.
func (m *Member) begin(ctx context.Context, v *wonTerm) {
	ctx, cancel := context.WithTimeout(ctx, dbTimeout)
	defer cancel()
	if err := m.cfg.DB.WishMet(ctx, m.cfg.Name); err != nil {
		m.log.Warn("take back the wish to lead", logkey.Error, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.term, m.ended, m.open = v.term, make(chan struct{}), true
	m.served = func() {
		if f := m.cfg.Observer.TookOver; f != nil {
			f(v.why, time.Since(v.noticed))
		}
	}
}

// withdraw ends the answering of requests in this term. It returns what answered them; nil = [Member.Serve] was not called.
func (m *Member) withdraw() *local {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open = false
	to, _ := m.front.now()
	m.front.set(nil)
	if to == nil {
		return nil
	}
	return to.local
}

// finish releases a term, and ends the watches of the other hosts.
func (m *Member) finish(ctx context.Context, term *pgdb.Term) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	if err := term.Release(ctx); err != nil {
		m.log.Warn("give up the term; another host leads when its lease is over", logkey.Error, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.ended)
	m.term, m.ended, m.served = nil, nil, nil
}

// Serve answers requests with a handler until the term ends. [Config.Lead] calls it when its host is ready; until then requests
// wait. Before a hand-over stop is called, which has to end waits and streams, and the other requests may end before the
// context of Lead does.
func (m *Member) Serve(term *pgdb.Term, handler http.Handler, stop func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.term != term || !m.open {
		return fmt.Errorf("answer clients: %w", pgdb.ErrTermOver)
	}
	m.front.set(newRoute(newLocal(handler, stop), nil))
	if served := m.served; served != nil {
		m.served = nil
		served()
	}
	return nil
}

// leading returns the term in which this host leads, and a channel that is closed when it has ended; nil = it doesn't lead.
func (m *Member) leading() (*pgdb.Term, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.term, m.ended
}
