package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// watch keeps a request to the leader open for as long as its term lasts: a leader that gives up its term ends the answer, and
// if it is killed the connection breaks. So standbys notice at once, and needn't ask the database all the time.
type watch struct {
	member *Member
	peer   *peer
	route  *route // of requests to it
	leader pgdb.Leader
	state  atomic.Int32 // a watchState
	end    context.CancelFunc
	done   sync.WaitGroup
}

type watchState int32

const (
	watchTrying    watchState = iota
	watchConnected            // the leader answers
	watchRefused              // nothing listens at its address
)

// Pauses before a watch connects again: the first one, the one from which on failures are logged, and the longest.
const (
	firstWait = 20 * time.Millisecond
	logWait   = 200 * time.Millisecond
	lastWait  = time.Second
)

func (m *Member) newWatch(l pgdb.Leader) *watch {
	ctx, end := context.WithCancel(context.Background())
	w := &watch{member: m, leader: l, peer: m.newPeer(l.Host, l.Address), end: end}
	w.route = newRoute(nil, w.peer)
	w.done.Go(func() { w.run(ctx) })
	return w
}

func (w *watch) connected() bool { return watchState(w.state.Load()) == watchConnected }
func (w *watch) refused() bool   { return watchState(w.state.Load()) == watchRefused }

// close ends the watch. Connections to the peer close when the requests on them have ended.
func (w *watch) close() {
	w.end()
	w.done.Wait()
	w.peer.transport.CloseIdleConnections()
}

func (w *watch) run(ctx context.Context) {
	wait, logged := firstWait, false
	for {
		connected, err := w.once(ctx)
		if ctx.Err() != nil {
			return
		}
		state := watchTrying
		if errors.Is(err, syscall.ECONNREFUSED) {
			state = watchRefused
		}
		w.state.Store(int32(state))
		w.member.wake()
		if connected {
			wait, logged = firstWait, false
		} else if !logged && state == watchTrying && wait > logWait {
			logged = true
			w.member.log.Warn("connect to the host that leads", "leader", w.leader.Host, logkey.Remote, w.leader.Address, logkey.Error, err)
		}
		if !sleep(ctx, wait) {
			return
		}
		wait = min(2*wait, lastWait)
	}
}

// once sends the request and waits until the answer ends. connected = the leader has answered.
func (w *watch) once(ctx context.Context) (connected bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+w.leader.Address+watchPath, http.NoBody)
	if err != nil {
		return false, err
	}
	resp, err := w.peer.transport.RoundTrip(r)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("it answers %s", resp.Status)
	}
	w.state.Store(int32(watchConnected))
	w.peer.reached.Store(true)
	defer w.peer.reached.Store(false)
	_, err = io.Copy(io.Discard, resp.Body)
	return true, err
}
