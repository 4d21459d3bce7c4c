package pgqueue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// inboxSchema lets programs submit jobs in transactions of their own. Their role needs only USAGE on the schema, since the
// functions run with the rights of the tables' owner. refused keeps the submits that were refused for a week.
const inboxSchema = `
CREATE TABLE jobhost.inbox (
	n       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id      text COLLATE "C" NOT NULL,
	body    jsonb NOT NULL CHECK (jsonb_typeof(body)='object' AND octet_length(body::text)<=65536),
	payload bytea NOT NULL CHECK (octet_length(payload)<=16777216)
);
CREATE TABLE jobhost.refused (
	n          bigint PRIMARY KEY,
	id         text COLLATE "C" NOT NULL,
	worker     text NOT NULL,
	reason     text NOT NULL,
	refused_at timestamptz NOT NULL DEFAULT now()
);
CREATE FUNCTION jobhost.submit(worker text, payload bytea, options jsonb DEFAULT '{}') RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	WITH named AS (SELECT coalesce(options->>'id', gen_random_uuid()::text) AS id)
	INSERT INTO jobhost.inbox (id, body, payload)
	SELECT id, options || jsonb_build_object('id', id, 'worker', worker), payload FROM named RETURNING id
$$;
CREATE FUNCTION jobhost.submit(worker text, payload text, options jsonb DEFAULT '{}') RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT jobhost.submit(worker, convert_to(payload, 'UTF8'), options)
$$;
CREATE FUNCTION jobhost.submit(worker text, payload jsonb, options jsonb DEFAULT '{}') RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT jobhost.submit(worker, convert_to(payload::text, 'UTF8'), '{"content_type": "application/json"}' || options)
$$`

// inboxRows are the jobs that leave the inbox. It is a [pgdb.Member].
type inboxRows struct {
	db      *pgdb.DB
	numbers []int64   // of the jobs that leave it, not flushed
	refused []refusal // those of them that were refused
}

type refusal struct {
	number int64
	reason string
}

func (r *inboxRows) init(db *pgdb.DB) { r.db = db }

// take removes a job from the inbox: it was submitted or, with a reason, refused.
func (r *inboxRows) take(number int64, reason string) {
	if number == 0 {
		return
	}
	r.numbers = append(r.numbers, number)
	if reason != "" {
		r.refused = append(r.refused, refusal{number, CleanText(reason)})
	}
}

// Read implements [pgdb.Member].
func (r *inboxRows) Read(*pgx.Batch) {}

// Flush implements [pgdb.Member].
func (r *inboxRows) Flush(b *pgx.Batch) error {
	if len(r.refused) > 0 {
		b.Queue(r.db.SQL(`INSERT INTO jobhost.refused (n, id, worker, reason)
			SELECT t.n, left(i.id, 200), left(coalesce(i.body->>'worker', ''), 200), t.reason FROM unnest($1::bigint[], $2::text[]) AS t(n, reason)
			JOIN jobhost.inbox i ON i.n=t.n ON CONFLICT DO NOTHING`),
			column(r.refused, func(r *refusal) int64 { return r.number }), column(r.refused, func(r *refusal) string { return r.reason }))
	}
	if len(r.numbers) > 0 {
		b.Queue(r.db.SQL("DELETE FROM jobhost.inbox WHERE n=ANY($1)"), r.numbers)
	}
	return nil
}

// forgetRefused removes refusals that are a week old.
func forgetRefused(s *pgdb.Session) error {
	_, err := s.Exec("DELETE FROM jobhost.refused WHERE refused_at<now()-interval '7 days'")
	return err
}

// Flushed implements [pgdb.Member].
func (r *inboxRows) Flushed() { r.numbers, r.refused = r.numbers[:0], r.refused[:0] }

// AfterCommit implements [pgdb.Member].
func (r *inboxRows) AfterCommit() { r.Flushed() }

// AfterRollback implements [pgdb.Member].
func (r *inboxRows) AfterRollback() { r.Flushed() }

// Bounds of reading the inbox.
const (
	inboxBytes = 8 << 20
	// inboxOverlap is how far a read goes back behind the last number seen, since transactions commit in another order
	// than they draw numbers. The whole inbox is read only now and then: while an old snapshot exists it has many dead rows,
	// so that is done the less often the longer it takes.
	inboxOverlap = 10_000
	inboxWhole   = time.Second
	inboxShare   = 20 // of the time
)

// inboxCursor is where the next read of the inbox begins.
type inboxCursor struct {
	mu   sync.Mutex
	seen int64
	next time.Time // when all of it is to be read
}

// from returns where a look begins, and what to call at its end.
func (c *inboxCursor) from() (n int64, looked func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	began := time.Now()
	if began.Before(c.next) {
		return max(c.seen-inboxOverlap, 0), func() {}
	}
	return 0, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.next = time.Now().Add(max(inboxWhole, inboxShare*time.Since(began)))
	}
}

func (c *inboxCursor) saw(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = max(c.seen, n)
}

// nextIncoming takes the rows of a page, and of these as many as fit in memory.
const nextIncoming = `SELECT n, id, body, payload FROM (
		SELECT n, id, body, payload, sum(size) OVER (ORDER BY n)-size AS before FROM (
			SELECT n, id, body::text, payload, octet_length(payload)+octet_length(body::text) AS size FROM jobhost.inbox
			WHERE n>$1 AND NOT coalesce(body->>'worker', '')=ANY($4::text[]) ORDER BY n LIMIT $2) AS first) AS small
	WHERE before<$3 ORDER BY n`

// Incoming implements [record.Inbox].
func (s *Store) Incoming(ctx context.Context, limit int, without []string) (jobs []record.Incoming, err error) {
	workers := append([]string{}, without...) // nil would be NULL
	from, looked := s.inbox.from()
	defer looked()
	err = s.db.Ask(ctx, func(b *pgx.Batch) {
		jobs = nil
		b.Queue(s.db.SQL(nextIncoming), from, limit, inboxBytes, workers).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var in record.Incoming
				var body string
				if err := rows.Scan(&in.Number, &in.ID, &body, &in.Payload); err != nil {
					return err
				}
				in.Body = []byte(body)
				jobs = append(jobs, in)
			}
			return rows.Err()
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the inbox: %w", err)
	}
	if len(jobs) > 0 {
		s.inbox.saw(jobs[len(jobs)-1].Number)
	}
	return jobs, nil
}
