// Package firestorestate keeps states in Google Firestore. It implements
// [state.Store].
//
//	jobs/{KEY}                        numTasks, createdAt, deleted (when it was marked)
//	jobs/{KEY}/states/{TASK}-{TAG}    taskID, tag, status, message, timestamp, version, eventID, payload, schemaVersion
//
// What is written is written by transactions, and times are the server's. A job
// that is open is followed by one listener, however many in this process have opened
// it: a goroutine that ends with the job's last feed, or when it gives up; Close
// waits for all of them. There is no cache: the feed, a [state.Board], is one.
//
// It speaks to Firestore by the generated client. The library above that mends a
// listener by itself, forever, without a word.
package firestorestate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	firestore "cloud.google.com/go/firestore/apiv1"
	"google.golang.org/api/option"

	"github.com/jobhost/jobhost/state"
)

// Options say which database to use, and how.
type Options struct {
	// Project is the id of the cloud project; it is never guessed.
	Project string
	// Database is the id of the database; empty = "(default)".
	Database string
	// Client are options of the client: credentials, an endpoint. Connections are
	// made as they are needed, so none may be handed in. With the variable
	// FIRESTORE_EMULATOR_HOST it is an emulator there that is spoken to.
	Client []option.ClientOption
	// Logger gets listeners that are lost; nil = nothing is logged.
	Logger *slog.Logger
	// Observer gets them too: only its function Reconnected is called.
	Observer state.Observer

	// RetryFor is how long a write or a read is tried again; 0 = 30 s.
	RetryFor time.Duration
	// CallTimeout is how long one try may take; 0 = 10 s.
	CallTimeout time.Duration
	// ListTimeout is how long a listener may take to tell what there is; 0 = 30 s.
	ListTimeout time.Duration
	// FeedWait is how long a write waits for the listener to bring it; then it is
	// handed to the feeds by itself. 0 = 1 s.
	FeedWait time.Duration
	// Backoff says when a listener that was lost is started again.
	Backoff Backoff
	// Idle is how long a job that no one uses any more may be followed; 0 = 1 min.
	Idle time.Duration
}

// Backoff is how long to wait before each attempt, and how many to make.
type Backoff struct {
	// First is before the first attempt; it doubles with each, up to Max.
	// 0 = 1 s and 60 s.
	First, Max time.Duration
	// Attempts is how many may fail in a row; 0 = 5.
	Attempts int
}

// withDefaults returns the options with what zeros mean.
func (o Options) withDefaults() Options {
	o.Database = cmp.Or(o.Database, "(default)")
	o.RetryFor = cmp.Or(o.RetryFor, 30*time.Second)
	o.CallTimeout = cmp.Or(o.CallTimeout, 10*time.Second)
	o.ListTimeout = cmp.Or(o.ListTimeout, 30*time.Second)
	o.FeedWait = cmp.Or(o.FeedWait, time.Second)
	o.Idle = cmp.Or(o.Idle, time.Minute)
	o.Backoff.First = cmp.Or(o.Backoff.First, time.Second)
	o.Backoff.Max = cmp.Or(o.Backoff.Max, time.Minute)
	o.Backoff.Attempts = cmp.Or(o.Backoff.Attempts, 5)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Store is a [state.Store] in Firestore.
type Store struct {
	opts   Options
	path   string            // of the database
	client *firestore.Client // for all but listeners
	lines  lines             // for listeners

	mu        sync.Mutex // protects the fields below; taken before those of listeners
	listeners map[string]*listener
	closed    bool
}

var (
	_ state.Store  = (*Store)(nil)
	_ state.Lister = (*Store)(nil)
	_ state.Costly = (*Store)(nil)
)

// Open returns a store. It makes no connection: a server that is away is no
// reason not to start.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if opts.Project == "" {
		return nil, errors.New("open states firestore: no project: it is never guessed")
	}
	if strings.Contains(opts.Project+opts.Database, "/") {
		return nil, errors.New("open states firestore: project and database are ids, without slashes")
	}
	opts = opts.withDefaults()
	s := &Store{
		opts: opts, path: "projects/" + opts.Project + "/databases/" + opts.Database,
		listeners: map[string]*listener{},
	}
	dial := opts.dialer(os.Getenv("FIRESTORE_EMULATOR_HOST"))
	client, err := dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("open states firestore: %w", err)
	}
	s.client, s.lines.dial = client, dial
	return s, nil
}

// IdleTime implements [state.Costly]: a job that is followed takes two streams, each
// change of it is a read, and each new start of its listener reads all its states.
func (s *Store) IdleTime() time.Duration { return s.opts.Idle }

// Close implements [state.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	var all []*listener
	for _, l := range s.listeners {
		all = append(all, l)
	}
	s.mu.Unlock()
	for _, l := range all {
		l.end(state.ErrClosed)
	}
	for _, l := range all {
		<-l.done
	}
	return errors.Join(s.lines.close(), s.client.Close())
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// The names of documents and collections.
const (
	jobsID   = "jobs"
	statesID = "states"
)

// root is what the names of all documents begin with.
func (s *Store) root() string { return s.path + "/documents" }

// jobName names the document of a job.
func (s *Store) jobName(job state.Job) string { return s.root() + "/" + jobsID + "/" + job.Key() }
