package cluster

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// How often a standby asks the database who leads. While it is connected to the leader the connection tells it when the
// leader's term ends, so it needn't ask often.
const (
	pollConnected = 500 * time.Millisecond
	pollAlone     = 250 * time.Millisecond
	pollVacant    = 50 * time.Millisecond // while another host is taking over, or the session of a killed leader still has to end
	// jitter keeps hosts that notice the end of a term at the same time from all trying to take over.
	jitter = 50 * time.Millisecond
	// takeTime is the timeout of a takeover, which may have to terminate the old leader's session.
	takeTime = 10 * time.Second
)

// wonTerm is a term that this host has won.
type wonTerm struct {
	term    *pgdb.Term
	why     string
	noticed time.Time // when this host found that there was no leader
}

// awaitLead stands by: it follows the leader until this host has taken over.
func (m *Member) awaitLead(ctx context.Context) (*wonTerm, error) {
	s := standby{member: m}
	defer s.unfollow()
	for {
		won, wait := s.poll(ctx)
		if won != nil {
			return won, nil
		}
		timer := time.NewTimer(wait + rand.N(wait/4))
		select {
		case <-timer.C:
		case <-m.wakeup:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// standby is what a standby knows of the leader.
type standby struct {
	member  *Member
	leader  pgdb.Leader
	pulse   pulse     // of the leader
	watch   *watch    // of the leader; nil = there is none
	noticed time.Time // when it found that there is no leader; zero = there is one
	failing bool      // the database does not answer
}

// poll asks who leads, and takes over if no host does. Otherwise it returns how long to wait.
func (s *standby) poll(ctx context.Context) (*wonTerm, time.Duration) {
	won, err := s.ask(ctx)
	if won != nil {
		return won, 0
	}
	s.logFailing(ctx, err)
	switch {
	case !s.noticed.IsZero() || s.watch != nil && s.watch.refused():
		return nil, pollVacant
	case s.watch != nil && s.watch.connected():
		return nil, pollConnected
	}
	return nil, pollAlone
}

func (s *standby) ask(ctx context.Context) (*wonTerm, error) {
	short, cancel := context.WithTimeout(ctx, dbTimeout)
	defer cancel()
	asked := time.Now()
	l, err := s.member.cfg.DB.Leader(short)
	if err != nil {
		return nil, err
	}
	s.pulse.feel(&l, asked)
	s.follow(l)
	why, err := s.vacant(short, &l)
	if err != nil || why == "" {
		return nil, err
	}
	return s.takeOver(ctx, l, why)
}

// logFailing logs when the database stops answering, and when it answers again.
func (s *standby) logFailing(ctx context.Context, err error) {
	if changed := s.failing != (err != nil); !changed || ctx.Err() != nil {
		return
	}
	if s.failing = err != nil; s.failing {
		s.member.log.Warn("find out who leads", logkey.Error, err)
		return
	}
	s.member.log.Info("the database says again who leads")
}

// follow sends requests to the leader and watches it.
func (s *standby) follow(l pgdb.Leader) {
	m, before := s.member, s.leader
	// A leader raises its own epoch when it looks up the outcome of a commit, so another epoch can be the same leader.
	same := s.watch != nil && l.Host == before.Host && l.Address == before.Address && (l.Epoch == before.Epoch || s.watch.connected())
	s.leader = l
	if !same {
		s.unfollow()
	}
	if l.Vacant(m.cfg.DB.Lease()) != "" || l.Host == m.cfg.Name {
		m.front.set(nil)
		return
	}
	if !same {
		m.log.Info("this host stands by", "leader", l.Host, "epoch", l.Epoch)
		s.watch = m.newWatch(l)
		if f := m.cfg.Observer.Following; f != nil {
			f(l.Host)
		}
	}
	m.front.set(s.watch.route)
}

// unfollow stops watching the leader.
func (s *standby) unfollow() {
	if s.watch != nil {
		s.watch.close()
		s.watch = nil
	}
}

// vacant says why there is no leader; empty = there may be one.
func (s *standby) vacant(ctx context.Context, l *pgdb.Leader) (why string, err error) {
	why = l.Vacant(s.member.cfg.DB.Lease())
	// The process of the leader has ended if its address refuses connections and its session in the database is gone: the
	// lease needn't be waited for. A leader with this host's name was this host before it was restarted.
	if why == "" && (l.Host == s.member.cfg.Name || s.watch != nil && s.watch.refused()) {
		there, err := s.member.cfg.DB.HasSession(ctx, *l)
		if err != nil {
			return "", err
		}
		if !there {
			why = Killed
		}
	}
	switch {
	case why == "":
		s.noticed = time.Time{}
	case s.noticed.IsZero():
		s.noticed = time.Now()
	}
	return why, nil
}

// takeOver begins a term of this host, unless another one is to lead; nil = it did not.
func (s *standby) takeOver(ctx context.Context, l pgdb.Leader, why string) (*wonTerm, error) {
	m := s.member
	ctx, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	asked := time.Now()
	hosts, err := m.cfg.DB.Hosts(ctx) // heartbeats are too rare to know of a wish that has just been made
	if err != nil {
		return nil, err
	}
	m.heard(hosts, asked) // or this host would give up its term for a wish that was taken back since its last heartbeat
	if !m.mayLead(hosts) {
		return nil, nil
	}
	if len(hosts) > 1 && !sleep(ctx, rand.N(jitter)) {
		return nil, context.Cause(ctx)
	}
	term, err := m.cfg.DB.TakeOver(ctx, l)
	if err != nil || term == nil {
		return nil, err
	}
	return &wonTerm{term, why, s.noticed}, nil
}
