package queuetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// bury makes a letter of a task that died.
func (m *model) bury(job *modelJob, task *modelTask, op *record.Settle) {
	var f jobhost.Failure
	if op.Failure != nil {
		f = *op.Failure
	}
	task.letter = &record.DeadRecord{
		DeadPlace: record.DeadPlace{DiedAt: op.EndedAt, Key: task.Key},
		Job:       job.spec.ID, Worker: job.spec.Worker, Index: task.Index, Attempts: op.Attempt, Labels: job.spec.Labels,
		Code: f.Code, Message: f.Message, Category: f.Category, Severity: f.Severity, CreatedAt: job.spec.CreatedAt,
	}
	m.dead[record.DeathRecord{Hour: op.EndedAt.Hour(), Worker: job.spec.Worker, Code: f.Code, Category: f.Category}]++
}

// letters is what the store should list.
func (m *model) letters(q *record.DeadQuery) (out []record.DeadRecord, next record.DeadPlace) {
	for _, job := range m.jobs {
		for i := range job.tasks {
			if letter := job.tasks[i].letter; letter != nil && wanted(letter, q) {
				out = append(out, *letter)
			}
		}
	}
	slices.SortFunc(out, func(a, b record.DeadRecord) int { return compareDeaths(b.DeadPlace, a.DeadPlace) })
	if q.Limit <= 0 {
		return nil, next
	}
	if len(out) > q.Limit {
		next = out[q.Limit-1].DeadPlace
	}
	return out[:min(len(out), q.Limit)], next
}

func compareDeaths(a, b record.DeadPlace) int {
	return cmp.Or(cmp.Compare(a.DiedAt, b.DiedAt), cmp.Compare(a.Key, b.Key))
}

// wanted is the meaning of a query without its limit.
func wanted(r *record.DeadRecord, q *record.DeadQuery) bool {
	for k, v := range q.Labels {
		if have, ok := r.Labels[k]; !ok || have != v {
			return false
		}
	}
	text := strings.ToLower(q.Text)
	return (q.Worker == "" || q.Worker == r.Worker) && (q.Code == "" || q.Code == r.Code) &&
		(q.Category == "" || q.Category == r.Category) && r.DiedAt >= q.After && (q.Before == 0 || r.DiedAt < q.Before) &&
		(q.Retried || r.RevivedAt == 0) && (q.Below == record.DeadPlace{} || compareDeaths(r.DeadPlace, q.Below) < 0) &&
		strings.Contains(strings.ToLower(r.Job+"\n"+r.Code+"\n"+r.Message), text)
}

// deaths is what the store should count.
func (m *model) deaths(after, before record.Millis) (out []record.DeathRecord) {
	for death, n := range m.dead {
		if death.N = n; death.Hour >= after && death.Hour < before {
			out = append(out, death)
		}
	}
	return out
}

// letters lists all dead letters, a few at a time.
func (s store) letters(q record.DeadQuery, limit int) (all []record.DeadRecord) {
	s.t.Helper()
	for q.Limit = limit; ; {
		page, next, err := s.Dead(s.t.Context(), q)
		if err != nil {
			s.t.Fatalf("dead letters: %v", err)
		}
		if len(page) > limit {
			s.t.Fatalf("%d letters on a page of %d", len(page), limit)
		}
		all = append(all, page...)
		if q.Below = next; next == (record.DeadPlace{}) {
			return all
		}
	}
}

func letterNames(letters []record.DeadRecord) []string {
	out := []string{}
	for i := range letters {
		out = append(out, fmt.Sprintf("%s/%d", letters[i].Job, letters[i].Index))
	}
	return out
}

// die settles a task as dead with a code, at a time.
func (s store) die(key record.Key, token int64, at record.Millis, code string, category jobhost.Category) {
	s.t.Helper()
	op := settlement(key, record.Dead)
	op.Token, op.EndedAt, op.Attempt = token, at, 3
	op.Failure = &jobhost.Failure{Code: code, Category: category, Severity: jobhost.SeverityError, Message: "The " + code + " failed"}
	s.must(op)
}

func testSingleTasks(t *testing.T, h Harness) {
	s := open(t, h)
	key := s.submit(spec("a", "w", tasks(4)))
	for _, index := range []int{-1, 4} {
		wantCode(t, s.do(&record.Cancel{ID: "a", Tasks: []int{index}})[0].Err, jobhost.CodeNotFound)
		wantCode(t, s.do(&record.Revive{ID: "a", Tasks: []int{index}})[0].Err, jobhost.CodeNotFound)
	}
	res := s.must(&record.Cancel{ID: "a", Tasks: []int{2, 1, 2}, At: epoch + 5})
	if len(res.Tasks) != 2 || res.Tasks[0].Key != key+1 || res.Tasks[1].Key != key+2 || res.JobEnded {
		t.Fatalf("cancel of two: %+v", res)
	}
	if again := s.must(&record.Cancel{ID: "a", Tasks: []int{1}}); len(again.Tasks) != 0 {
		t.Fatalf("cancel again: %+v", again)
	}
	s.succeed(key)
	wantCode(t, s.do(&record.Cancel{ID: "a", Tasks: []int{0}})[0].Err, jobhost.CodeConflict)
	wantCode(t, s.do(&record.Revive{ID: "a", Tasks: []int{0, 3}})[0].Err, jobhost.CodeConflict)
	if res := s.must(&record.Cancel{ID: "a", Tasks: []int{3}}); !res.JobEnded {
		t.Fatalf("cancel of the last one: %+v", res)
	}
	res = s.must(&record.Revive{ID: "a", Tasks: []int{2}, At: epoch + 9})
	if len(res.Tasks) != 1 || res.Tasks[0].Key != key+2 || res.Tasks[0].ReadyAt != epoch+9 {
		t.Fatalf("revive of one: %+v", res)
	}
	if job := s.job("a"); job.Tasks[1].Status != record.Cancelled || job.Tasks[2].Status != record.Open {
		t.Fatalf("tasks %+v", job.Tasks)
	}
	s.checkCounts()
}

func testDead(t *testing.T, h Harness) {
	s := open(t, h)
	labelled := func(j *record.JobSpec) { j.Labels = map[string]string{"team": "blue", "x": ""} }
	a := s.submit(spec("a", "w", tasks(2), labelled))
	b, c := s.submit(spec("b", "w")), s.submit(spec("c", "x"))
	s.die(a, 0, epoch+30, "disk", jobhost.CategorySystem)
	s.die(a+1, 0, epoch+10, "net", jobhost.CategoryNetwork)
	s.die(c, 0, epoch+20, "net", jobhost.CategoryNetwork)
	s.succeed(b)
	for _, tt := range []struct {
		name string
		q    record.DeadQuery
		want []string
	}{
		{"all", record.DeadQuery{}, []string{"a/0", "c/0", "a/1"}},
		{"worker", record.DeadQuery{Worker: "w"}, []string{"a/0", "a/1"}},
		{"no such worker", record.DeadQuery{Worker: "y"}, nil},
		{"code", record.DeadQuery{Code: "net"}, []string{"c/0", "a/1"}},
		{"code of a worker", record.DeadQuery{Code: "net", Worker: "w"}, []string{"a/1"}},
		{"category", record.DeadQuery{Category: jobhost.CategorySystem}, []string{"a/0"}},
		{"after", record.DeadQuery{After: epoch + 20}, []string{"a/0", "c/0"}},
		{"before", record.DeadQuery{Before: epoch + 20}, []string{"a/1"}},
		{"label", record.DeadQuery{Labels: map[string]string{"team": "blue"}}, []string{"a/0", "a/1"}},
		{"empty label", record.DeadQuery{Labels: map[string]string{"y": ""}}, nil},
		{"text", record.DeadQuery{Text: "NET fail"}, []string{"c/0", "a/1"}},
	} {
		for _, limit := range []int{1, 100} {
			wantSame(t, tt.name, letterNames(s.letters(tt.q, limit)), tt.want)
		}
	}
	want := record.DeadRecord{
		DeadPlace: record.DeadPlace{DiedAt: epoch + 30, Key: a}, Job: "a", Worker: "w", Attempts: 3,
		Labels: map[string]string{"team": "blue", "x": ""}, Code: "disk", Message: "The disk failed",
		Category: jobhost.CategorySystem, Severity: jobhost.SeverityError, CreatedAt: epoch,
	}
	wantSame(t, "letters", s.letters(record.DeadQuery{}, 10)[0], want)

	// A revived task's letter is kept, until the task dies again.
	token := s.must(&record.Revive{ID: "a", Tasks: []int{0}, At: epoch + 40}).Tasks[0].Token
	wantSame(t, "after the revival", letterNames(s.letters(record.DeadQuery{}, 10)), []string{"c/0", "a/1"})
	want.RevivedAt = epoch + 40
	wantSame(t, "letters", s.letters(record.DeadQuery{Retried: true}, 10)[0], want)
	s.die(a, token, epoch+5, "again", jobhost.CategorySystem)
	wantSame(t, "after another death", letterNames(s.letters(record.DeadQuery{Retried: true}, 10)), []string{"c/0", "a/1", "a/0"})
	s.must(&record.Delete{ID: "a"})
	wantSame(t, "after the delete", letterNames(s.letters(record.DeadQuery{Retried: true}, 10)), []string{"c/0"})
}

// testDeadPages looks for few among many that died in the same moments.
func testDeadPages(t *testing.T, h Harness) {
	s := open(t, h)
	const n = 600
	var submits, settles []record.Op
	for i := range n {
		submits = append(submits, &record.Submit{Job: spec(fmt.Sprintf("%04d", i), "w")})
	}
	for i, res := range s.do(submits...) {
		op := settlement(res.Key, record.Dead)
		op.EndedAt = epoch + record.Millis(i/50)
		op.Failure = &jobhost.Failure{Code: "x", Message: []string{"common", "rare"}[min(i%200/199, 1)]}
		settles = append(settles, op)
	}
	s.do(settles...)
	all := letterNames(s.letters(record.DeadQuery{}, 7))
	slices.Sort(all)
	if all = slices.Compact(all); len(all) != n {
		t.Errorf("%d letters in all pages, want %d", len(all), n)
	}
	wantSame(t, "rare ones", letterNames(s.letters(record.DeadQuery{Text: "rare"}, 2)), []string{"0599/0", "0399/0", "0199/0"})
}

func testDeaths(t *testing.T, h Harness) {
	s := open(t, h)
	const hour = 3_600_000
	first := epoch.Hour()
	for i, at := range []record.Millis{first, first + 1, first + hour - 1, first + hour, first + 3*hour} {
		code := []string{"a", "b"}[i/2%2]
		s.die(s.submit(spec(fmt.Sprint(i), "w")), 0, at, code, jobhost.CategoryNetwork)
	}
	s.must(&record.Delete{ID: "0"}) // it died all the same
	deaths, err := s.Deaths(t.Context(), first, first+2*hour)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(deaths, func(a, b record.DeathRecord) int {
		return cmp.Or(cmp.Compare(a.Hour, b.Hour), cmp.Compare(a.Code, b.Code))
	})
	death := func(hour record.Millis, code string, n int64) record.DeathRecord {
		return record.DeathRecord{Hour: hour, Worker: "w", Code: code, Category: jobhost.CategoryNetwork, N: n}
	}
	wantSame(t, "deaths", deaths, []record.DeathRecord{death(first, "a", 2), death(first, "b", 1), death(first+hour, "b", 1)})
}

func genDeadQuery() *rapid.Generator[record.DeadQuery] {
	return rapid.Custom(func(t *rapid.T) record.DeadQuery {
		q := record.DeadQuery{
			Worker: rapid.SampledFrom([]string{"", "", "w", "y"}).Draw(t, "worker"),
			Code:   rapid.SampledFrom([]string{"", "", "x"}).Draw(t, "code"),
			Text:   rapid.SampledFrom([]string{"", "", "too", "y"}).Draw(t, "text"),
			Limit:  rapid.IntRange(0, 5).Draw(t, "limit"), Retried: rapid.Bool().Draw(t, "retried"),
		}
		if rapid.Bool().Draw(t, "by time") {
			q.After = epoch + record.Millis(rapid.IntRange(-1, 3).Draw(t, "after"))
			q.Before = epoch + record.Millis(rapid.IntRange(-1, 5).Draw(t, "before"))
		}
		if rapid.Bool().Draw(t, "category") {
			q.Category = jobhost.CategoryBusiness
		}
		return q
	})
}
