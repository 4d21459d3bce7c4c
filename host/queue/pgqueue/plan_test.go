package pgqueue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/pgqueue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// planJobs is how many jobs the plans are made for. A scan of their table reads several times what a page may.
const planJobs = 40_000

// fillPlans makes jobs as a host leaves them behind: worker w1 has most, w50 a handful, nearly all tasks have succeeded,
// few are dead, the newest are open, every hundredth job has five tasks, and jobs of one label have none of another.
// JOBS is their number.
var fillPlans = []string{
	`INSERT INTO jobhost.worker SELECT i, 'w'||i FROM generate_series(1, 50) i`,
	`CREATE TABLE jobhost.made AS SELECT i, tasks, worker, (sum(tasks) OVER (ORDER BY i)-tasks+1)::bigint AS seq, 1700000000000+i*100 AS at,
			CASE WHEN i%(JOBS/5)=11 THEN 2 WHEN i>JOBS*14/15 THEN 0 WHEN i%1000=5 THEN 3 ELSE 1 END AS status FROM (
		SELECT i::bigint, CASE WHEN i%100=0 THEN 5 ELSE 1 END AS tasks,
			(CASE WHEN i%(JOBS/8)=7 THEN 50 WHEN i%10<7 THEN 1 ELSE 2+i%40 END)::bigint AS worker FROM generate_series(1, JOBS) i) j`,
	`INSERT INTO jobhost.job SELECT seq, 'job-'||i, worker, tasks, 0, 3, 30000000000, at, at, '\x00112233445566778899aabbccddeeff', '', 'application/json',
		'{"team":"blue"}', '', '', repeat('x', 200)::bytea FROM jobhost.made`,
	`INSERT INTO jobhost.task SELECT seq+k, seq, k, tasks, worker, 2, status, 1, 1, at, at, at+50, 0, 0, 0, 0, 0, 1800000000000, false, ''
		FROM jobhost.made CROSS JOIN LATERAL generate_series(0, tasks-1) k`,
	`INSERT INTO jobhost.label SELECT 'team', CASE WHEN i<JOBS/100 THEN 'red' ELSE 'blue' END, seq FROM jobhost.made`,
	`INSERT INTO jobhost.label SELECT 'customer', (i%1000)::text, seq FROM jobhost.made`,
	`INSERT INTO jobhost.child SELECT seq, CASE WHEN i<JOBS/2 THEN 'job-1' ELSE 'job-'||(i%1000+2) END, CASE WHEN i<JOBS/2 THEN 1 ELSE i%1000+2 END, 0, 1
		FROM jobhost.made WHERE i%2=0`,
	`INSERT INTO jobhost.counter SELECT worker, status, count(*) FROM jobhost.task GROUP BY 1, 2`,
	`INSERT INTO jobhost.span SELECT seq>>10, min(created_at), max(created_at), 0 FROM jobhost.job GROUP BY 1`,
	`INSERT INTO jobhost.dead SELECT seq, worker, ended_at, 0, 3, CASE WHEN seq%1000=1 THEN 'user' ELSE 'system' END,
		CASE WHEN seq<5 THEN 'rare' ELSE 'c'||seq%10 END, 'error', 'message '||seq FROM jobhost.task WHERE idx=0`,
	`INSERT INTO jobhost.failure (task, record) SELECT seq, '{}' FROM jobhost.task`,
	`INSERT INTO jobhost.log (task, idx, attempt, dropped, text) SELECT seq, 0, 1, 0, 'line' FROM jobhost.task`,
	`INSERT INTO jobhost.kv SELECT CASE WHEN i<JOBS/2 THEN 1 ELSE 2 END, 'key-'||i, 1, CASE WHEN i%100=0 THEN at ELSE 0 END, at, 5, 'value' FROM jobhost.made`,
	`INSERT INTO jobhost.kv_worker VALUES (1, 1000000, 1), (2, 1000000, 1)`,
	`INSERT INTO jobhost.workflow SELECT seq, 'wf-'||i, 'w'||worker, 'hash', CASE WHEN i>JOBS*14/15 THEN 0 WHEN i%(JOBS/5)=11 THEN 3 WHEN i%1000=5 THEN 2 ELSE 1 END,
		'\x00', 0, CASE WHEN i%100=7 THEN 1 ELSE 0 END, '', '', '', '', at, 0, 0, 0, '', repeat('x', 100)::bytea FROM jobhost.made`,
	`DROP TABLE jobhost.made`,
}

// planCase is a statement and what it may read.
type planCase struct {
	name string
	sql  string
	args []any
	most int // pages of 8 KiB of tables and indexes
}

// writerCases are statements of evictions, which run with the writer's settings.
func writerCases() []planCase {
	list, single := pgqueue.VictimsSQL()
	var keys, ends []int64
	var ids []string
	for i := range 50 { // the jobs have one task
		key := int64(planJobs/2 + 10*i + 5)
		keys, ends, ids = append(keys, key), append(ends, key+1), append(ids, fmt.Sprint("job-", key))
	}
	return []planCase{
		{"victims of a worker", list, []any{[]int64{1}, []int64{0}, []int64{32}}, pageReads},
		{"single victims", single, []any{keys}, pageReads},
		{"remove victims", pgqueue.RemoveEvicted, []any{keys, ends, ids}, 2 * pageReads},
	}
}

// What a page may read. One that is selected by time and by more than that looks at all that is selected otherwise in
// the blocks of 1,024 keys at both ends of the time.
const (
	pageReads  = 2000
	blockReads = 10_000
)

func listCase(name string, q record.ListQuery) planCase {
	q.Limit = 51
	sql, args := pgqueue.ListSQL(&q)
	most := pageReads
	if q.After != 0 || q.Before != 0 {
		most = blockReads
	}
	return planCase{name, sql, []any{args}, most}
}

func workflowCase(name string, q record.WorkflowQuery) planCase {
	q.Limit = 51
	sql, args := pgqueue.WorkflowsSQL(&q)
	return planCase{name, sql, args, pageReads}
}

func deadCase(name string, q record.DeadQuery) planCase {
	sql, args := pgqueue.DeadSQL(&q, 204)
	return planCase{name, sql, []any{args}, pageReads}
}

func planCases() []planCase {
	status := func(s record.Status) *record.Status { return &s }
	state := func(s record.WorkflowStatus) *record.WorkflowStatus { return &s }
	label := func(name, value string) map[string]string { return map[string]string{name: value} }
	early := record.Millis(1_700_000_000_000 + planJobs/3*100)
	keys := make([]int64, 51)
	for i := range keys {
		keys[i] = int64(1 + i*planJobs/60)
	}
	return []planCase{
		workflowCase("workflows", record.WorkflowQuery{}),
		workflowCase("workflows below", record.WorkflowQuery{Below: planJobs / 2}),
		workflowCase("workflows, name", record.WorkflowQuery{Name: "w1"}),
		workflowCase("workflows that run", record.WorkflowQuery{Status: state(record.WorkflowRunning)}),
		workflowCase("workflows, rare status", record.WorkflowQuery{Status: state(record.WorkflowCancelled)}),
		workflowCase("workflows, name and rare status", record.WorkflowQuery{Name: "w1", Status: state(record.WorkflowCancelled)}),
		workflowCase("workflows that are steps", record.WorkflowQuery{Parent: "wf-1"}),
		workflowCase("workflows, old", record.WorkflowQuery{After: early, Before: early + 1000}),
		listCase("newest", record.ListQuery{}),
		listCase("below", record.ListQuery{Below: planJobs / 2}),
		listCase("worker", record.ListQuery{Worker: "w1"}),
		listCase("worker with few", record.ListQuery{Worker: "w50"}),
		listCase("no worker", record.ListQuery{Worker: "none"}),
		listCase("status", record.ListQuery{Status: status(record.Succeeded)}),
		listCase("rare status", record.ListQuery{Status: status(record.Dead)}),
		listCase("worker and status", record.ListQuery{Worker: "w1", Status: status(record.Succeeded)}),
		listCase("worker and rare status", record.ListQuery{Worker: "w1", Status: status(record.Dead)}),
		listCase("label", record.ListQuery{Labels: label("customer", "7")}),
		listCase("common label", record.ListQuery{Labels: label("team", "blue")}),
		listCase("old label", record.ListQuery{Labels: label("team", "red")}),
		listCase("labels that exclude each other", record.ListQuery{Labels: map[string]string{"team": "red", "customer": "999"}}),
		listCase("common label, rare status", record.ListQuery{Labels: label("team", "blue"), Status: status(record.Dead)}),
		listCase("common label, worker with few", record.ListQuery{Labels: label("team", "blue"), Worker: "w50"}),
		listCase("parent", record.ListQuery{Parent: "job-1"}),
		listCase("parent with few", record.ListQuery{Parent: "job-8"}),
		listCase("old", record.ListQuery{After: early, Before: early + 1000}),
		listCase("before", record.ListQuery{Before: early}),
		listCase("since", record.ListQuery{After: 1_700_000_000_000 + (planJobs-20)*100}),
		listCase("worker, old", record.ListQuery{Worker: "w1", After: early, Before: early + 1000}),
		listCase("no such time", record.ListQuery{Before: 1_000_000}),
		{"keys", pgqueue.PageOfKeys, []any{pgx.NamedArgs{"keys": keys}}, pageReads},
		{"tasks", pgqueue.TasksByKey, []any{keys}, pageReads},
		{"tasks of a job", pgqueue.ByID, []any{"job-100"}, pageReads},
		{"failures of a job", pgqueue.FailedByID, []any{"job-100"}, pageReads},
		{"logs of a job", pgqueue.Logs, []any{100}, pageReads},
		{"results", pgqueue.Results, []any{100, 0, 100, 1000}, pageReads},
		{"claim", pgqueue.ClaimTasks, []any{"w1", 0, 0, 500}, pageReads},
		{"claim on", pgqueue.ClaimTasks, []any{"w1", 1_700_000_000_000 + (planJobs-20)*100, 1, 65_536}, pageReads},
		{"claim nothing", pgqueue.ClaimTasks, []any{"w1", 1_800_000_000_000, 1, 65_536}, pageReads},
		{"load", pgqueue.LoadTasks, []any{keys}, pageReads},
		{"load jobs", pgqueue.LoadJobs, []any{keys}, pageReads},
		deadCase("dead", record.DeadQuery{}),
		deadCase("dead, worker", record.DeadQuery{Worker: "w1"}),
		deadCase("dead, worker with few", record.DeadQuery{Worker: "w50"}),
		deadCase("dead, code", record.DeadQuery{Code: "c7"}),
		deadCase("dead, rare code", record.DeadQuery{Code: "rare"}),
		deadCase("dead, no code", record.DeadQuery{Code: "none"}),
		deadCase("dead, category", record.DeadQuery{Category: "user"}),
		deadCase("dead, before", record.DeadQuery{Before: early}),
		{"keys of a worker", pgqueue.ListKeys, []any{"w1", "key-3", "", "key-4", 1, 100}, pageReads},
		{"size of keys", pgqueue.SizeOfKeys, []any{"w1", 1_700_000_000_000, 40}, pageReads},
		{"family", pgqueue.FamilyOf, []any{3}, pageReads},
	}
}

// literals are arguments as texts, which EXECUTE converts.
func literals(args []any) string {
	list := make([]string, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case []int64, []string:
			text, _ := json.Marshal(arg)
			list[i] = "'{" + strings.Trim(string(text), "[]") + "}'"
		default:
			list[i] = fmt.Sprintf("'%v'", arg)
		}
	}
	return strings.Join(list, ", ")
}

// plan is a node of a plan, as EXPLAIN writes it.
type plan struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Hit      int    `json:"Shared Hit Blocks"`
	Read     int    `json:"Shared Read Blocks"`
	Plans    []plan
}

// large are the tables that grow with the number of jobs.
var large = map[string]bool{"job": true, "task": true, "label": true, "child": true, "dead": true, "failure": true, "log": true, "kv": true, "workflow": true}

// scans returns the large tables that are read as a whole.
func (p *plan) scans() (tables []string) {
	if strings.HasSuffix(p.Type, "Seq Scan") && large[p.Relation] {
		tables = append(tables, p.Relation)
	}
	for i := range p.Plans {
		tables = append(tables, p.Plans[i].scans()...)
	}
	return tables
}

// planner is a session in which statements are explained.
type planner struct {
	*pgx.Conn
	schema string
}

func (p *planner) exec(t *testing.T, sql string) {
	t.Helper()
	sql = strings.NewReplacer("jobhost.", p.schema+".", "JOBS", strconv.Itoa(planJobs)).Replace(sql)
	if _, err := p.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// explain runs a case and returns its plan.
func (p *planner) explain(t *testing.T, c *planCase) *plan {
	t.Helper()
	sql, args := c.sql, c.args
	if named, ok := args[0].(pgx.NamedArgs); ok {
		var err error
		if sql, args, err = named.RewriteQuery(t.Context(), p.Conn, sql, nil); err != nil {
			t.Fatal(err)
		}
	}
	p.exec(t, "PREPARE explained AS "+sql)
	defer p.exec(t, "DEALLOCATE explained")
	var text string
	if err := p.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE explained("+literals(args)+")", pgx.QueryExecModeSimpleProtocol).
		Scan(&text); err != nil {
		t.Fatal(err)
	}
	var list []struct{ Plan plan }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	return &list[0].Plan
}

// TestPlans shows that no statement for people, and none of a host that begins to lead, reads a table as a whole, or
// more pages than a page of a list is worth: neither when the server knows the tables well nor when it knows nothing of
// them, nor with plans for any arguments, to which it may change when a statement was used five times.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	conn, err := pgx.Connect(t.Context(), postgres.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	p := &planner{conn, s.schema}
	for _, table := range slices.Sorted(maps.Keys(large)) {
		p.exec(t, "ALTER TABLE jobhost."+table+" SET (autovacuum_enabled=false)")
	}
	for _, sql := range fillPlans {
		p.exec(t, sql)
	}
	for _, step := range []struct{ name, sql string }{
		{"no statistics", "SET plan_cache_mode=force_custom_plan"},
		{"no statistics, any arguments", "SET plan_cache_mode=force_generic_plan"},
		{"statistics, any arguments", "ANALYZE"},
		{"statistics", "SET plan_cache_mode=force_custom_plan"},
	} {
		p.exec(t, step.sql)
		check := func(c *planCase) {
			t.Run(step.name+"/"+c.name, func(t *testing.T) { // one after the other: they share the session
				plan := p.explain(t, c)
				t.Logf("%d pages", plan.Hit+plan.Read)
				if tables := plan.scans(); tables != nil {
					t.Errorf("reads all of %v", tables)
				}
				if n := plan.Hit + plan.Read; n > c.most {
					t.Errorf("reads %d pages, want %d at most", n, c.most)
				}
			})
		}
		for _, c := range planCases() {
			check(&c)
		}
		for _, c := range writerCases() {
			p.exec(t, "BEGIN; SET LOCAL enable_seqscan=off; SET LOCAL enable_hashjoin=off; SET LOCAL enable_mergejoin=off; SET LOCAL jit=off")
			check(&c)
			p.exec(t, "ROLLBACK")
		}
	}
}
