package cluster

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// How often a standby asks the database who leads. As long as it is connected to the leader it would learn of its end
// from the connection, so it rarely asks; without that it has to.
const (
	pollConnected = 500 * time.Millisecond
	pollAlone     = 250 * time.Millisecond
	pollVacant    = 50 * time.Millisecond // while another host takes over, or the leader's session is about to end
	// jitter keeps hosts that notice the end of a term together from all taking over.
	jitter = 50 * time.Millisecond
	// takeTime is how long a takeover may take, which may have to end the session of the old leader.
	takeTime = 10 * time.Second
)

// victory is a term that this host has won.
type victory struct {
	term    *pgdb.Term
	why     string
	noticed time.Time // that there was no leader
}

// standBy follows who leads until this host does.
func (m *Member) standBy(ctx context.Context) (*victory, error) {
	s := standing{member: m}
	defer s.unfollow()
	for {
		won, wait := s.look(ctx)
		if won != nil {
			return won, nil
		}
		timer := time.NewTimer(wait + rand.N(wait/4))
		select {
		case <-timer.C:
		case <-m.look:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// standing is what a standby knows of the leader.
type standing struct {
	member  *Member
	leader  pgdb.Leader
	watch   *watch    // of the leader; nil = there is none
	noticed time.Time // that there is no leader; zero = there is one
	failing bool      // the database does not answer
}

// look asks who leads and takes over if no host does. Otherwise it says how long to wait.
func (s *standing) look(ctx context.Context) (*victory, time.Duration) {
	won, err := s.ask(ctx)
	if won != nil {
		return won, 0
	}
	s.report(ctx, err)
	switch {
	case !s.noticed.IsZero() || s.watch != nil && s.watch.refused():
		return nil, pollVacant
	case s.watch != nil && s.watch.connected():
		return nil, pollConnected
	}
	return nil, pollAlone
}

func (s *standing) ask(ctx context.Context) (*victory, error) {
	short, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	l, err := s.member.cfg.DB.Leader(short)
	if err != nil {
		return nil, err
	}
	s.follow(l)
	why, err := s.vacant(short, &l)
	if err != nil || why == "" {
		return nil, err
	}
	return s.takeOver(ctx, l, why)
}

// report logs when the database stops answering, and when it answers again.
func (s *standing) report(ctx context.Context, err error) {
	if changed := s.failing != (err != nil); !changed || ctx.Err() != nil {
		return
	}
	if s.failing = err != nil; s.failing {
		s.member.log.Warn("find out who leads", logkey.Error, err)
		return
	}
	s.member.log.Info("the database says again who leads")
}

// follow takes in who leads, and lets requests go there.
func (s *standing) follow(l pgdb.Leader) {
	m, before := s.member, s.leader
	// A leader that looks up the outcome of a commit has another epoch than before.
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

// unfollow ends the watch of the leader, if there is one.
func (s *standing) unfollow() {
	if s.watch != nil {
		s.watch.close()
		s.watch = nil
	}
}

// vacant says why there is no leader; empty = there may be one.
func (s *standing) vacant(ctx context.Context, l *pgdb.Leader) (why string, err error) {
	why = l.Vacant(s.member.cfg.DB.Lease())
	// A leader whose process has ended needn't be waited for: its address refuses connections, and the session with
	// which it wrote is gone. One of this name was this host before it was started anew.
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

// takeOver begins a term of this host, if it is the one that may; nil = another host is or was faster.
func (s *standing) takeOver(ctx context.Context, l pgdb.Leader, why string) (*victory, error) {
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
	return &victory{term, why, s.noticed}, nil
}
