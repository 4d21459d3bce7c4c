package journal_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/internal/testing/smalldisk"
)

// open opens a journal. One that is not closed is what a crash leaves: the kernel
// keeps what was stored.
func open(t testing.TB, path string) (j *journal.Journal, missed *atomic.Int64) {
	t.Helper()
	missed = &atomic.Int64{}
	j, err := journal.Open(path, func() { missed.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	return j, missed
}

func task(n int) *journal.Task {
	return &journal.Task{
		Worker: "w", Job: fmt.Sprint("job-", n), Place: journal.Inline, Index: n, Number: n + 1,
		Key: int64(n) + 100, Token: int64(n) + 200, Began: time.UnixMilli(1_700_000_000_000 + int64(n)),
	}
}

// left are the tasks that were left, with their phases.
func left(j *journal.Journal) map[string]journal.Phase {
	phases := map[string]journal.Phase{}
	for _, l := range j.Previous().Left {
		phases[l.Job] = l.Phase
	}
	return phases
}

func TestWhatACrashLeaves(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path)
	if j.Previous().Crashed {
		t.Error("a new journal tells of a crash")
	}
	j.Begin(task(0), journal.Running)
	j.Begin(task(1), journal.Waiting)
	j.Begin(task(2), journal.Waiting).Run()
	j.Begin(task(3), journal.Running).Settle()
	j.Begin(task(4), journal.Running).End()

	again, _ := open(t, path)
	want := map[string]journal.Phase{"job-0": journal.Running, "job-1": journal.Waiting, "job-2": journal.Running, "job-3": journal.Settling}
	if diff := cmp.Diff(want, left(again)); diff != "" || !again.Previous().Crashed {
		t.Errorf("crashed %t, left:\n%s", again.Previous().Crashed, diff)
	}
	for _, l := range again.Previous().Left {
		if l.Job == "job-2" {
			if diff := cmp.Diff(*task(2), l.Task, cmpopts.EquateApproxTime(0)); diff != "" {
				t.Error(diff)
			}
		}
		if l.Job != "job-0" {
			l.End()
		}
	}
	again.Begin(task(5), journal.Running) // in another place than what was left

	// The host died before it was through with what was left.
	third, _ := open(t, path)
	if diff := cmp.Diff(map[string]journal.Phase{"job-0": journal.Running, "job-5": journal.Running}, left(third)); diff != "" {
		t.Error(diff)
	}
}

func TestLongestNames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path)
	long := *task(1)
	long.Worker, long.Job, long.Fiber, long.Load, long.Place = strings.Repeat("w", 63), strings.Repeat("j", 128), true, true, journal.Process
	j.Begin(&long, journal.Running)
	again, _ := open(t, path)
	if diff := cmp.Diff(long, again.Previous().Left[0].Task, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Error(diff)
	}
}

func TestCleanEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path)
	j.Remember([]byte("first"))
	j.Remember([]byte("second"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	again, _ := open(t, path)
	if p := again.Previous(); p.Crashed || string(p.Memo) != "second" || len(p.Left) > 0 {
		t.Errorf("%+v", p)
	}
}

// What is not of this format, or of another boot, is not believed.
func TestForeignFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path)
	j.Begin(task(0), journal.Running)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(at int, b byte) []byte {
		data := append([]byte(nil), whole...)
		data[at] ^= b
		return data
	}
	for name, data := range map[string][]byte{
		"empty": {}, "short": whole[:5000], "long": append(whole[:len(whole):len(whole)], 0),
		"version": changed(7, 1), "boot": changed(20, 1),
		"phase": changed(4096, 0x7f), "place": changed(4097, 0x7f), "name": changed(4096+40, 0xff),
	} {
		other := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(other, data, 0o644); err != nil {
			t.Fatal(err)
		}
		j, missed := open(t, other)
		if p := j.Previous(); len(p.Left) > 0 {
			t.Errorf("%s: left %+v", name, p.Left)
		}
		j.Begin(task(1), journal.Running)
		if again, _ := open(t, other); len(again.Previous().Left) != 1 || missed.Load() != 0 {
			t.Errorf("%s: it can't be used: %+v", name, again.Previous())
		}
	}
}

// A slot whose state was not written yet is free, whatever else is in it.
func TestTornSlot(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, path)
	j.Begin(task(0), journal.Running)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.LittleEndian.AppendUint32(nil, 0), 4096); err != nil {
		t.Fatal(err)
	}
	if again, _ := open(t, path); len(again.Previous().Left) > 0 {
		t.Errorf("%+v", again.Previous().Left)
	}
}

func TestFull(t *testing.T) {
	t.Parallel()
	j, missed := open(t, filepath.Join(t.TempDir(), "journal"))
	entries := make([]*journal.Entry, journal.Slots)
	for i := range entries {
		if entries[i] = j.Begin(task(i), journal.Running); entries[i] == nil {
			t.Fatalf("no room for attempt %d", i)
		}
	}
	one := j.Begin(task(0), journal.Running)
	one.Run()
	one.Settle()
	one.End()
	if one != nil || missed.Load() != 1 {
		t.Errorf("%v, %d were missed", one, missed.Load())
	}
	entries[7].End()
	entries[7].End()
	if j.Begin(task(0), journal.Running) == nil || j.Begin(task(0), journal.Running) != nil {
		t.Error("a slot that was ended twice was given out twice, or never")
	}
}

// A journal of another boot is used where it is; a new one finds no room, and
// leaves none in use.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := smalldisk.New(t, 8<<20)
	path := filepath.Join(dir, "journal")
	j, _ := open(t, path)
	j.Begin(task(0), journal.Running)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("before"), 0)
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	defer smalldisk.Fill(t, dir)()
	j, missed := open(t, path)
	if len(j.Previous().Left) != 0 {
		t.Error("what another boot has left is believed")
	}
	j.Begin(task(1), journal.Running)
	if missed.Load() != 0 {
		t.Error("an attempt is not noted")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other")
	if _, err := journal.Open(other, func() {}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a new journal: %v", err)
	}
	if info, err := os.Stat(other); err != nil || info.Size() != 0 {
		t.Fatalf("a journal that was not opened takes room: %v, %v", info, err)
	}
}

// A page that can't be had must not end the host.
func TestFileIsCut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, missed := open(t, path)
	before := j.Begin(task(0), journal.Running)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	before.Settle()
	before.End()
	j.Remember([]byte("x"))
	if e := j.Begin(task(1), journal.Running); e != nil || missed.Load() == 0 {
		t.Errorf("%v, %d were missed", e, missed.Load())
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func TestNone(t *testing.T) {
	t.Parallel()
	var j *journal.Journal
	e := j.Begin(task(0), journal.Running)
	e.Run()
	e.Settle()
	e.End()
	j.Remember(nil)
	if p := j.Previous(); p.Crashed || j.Close() != nil {
		t.Errorf("%+v", p)
	}
}

// Many goroutines begin and end; what is left at the end is exactly what was not ended.
func TestHammer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, missed := open(t, path)
	const goroutines, rounds = 16, 2000
	var wait sync.WaitGroup
	for g := range goroutines {
		wait.Go(func() {
			var held []*journal.Entry
			for i := range rounds {
				e := j.Begin(task(g*rounds+i), journal.Running)
				if i%3 == 0 {
					e.Settle()
				}
				if held = append(held, e); len(held) > 7 {
					held[i%8].End()
					held = append(held[:i%8], held[i%8+1:]...)
				}
			}
			for _, e := range held {
				e.End()
			}
			j.Begin(task(1_000_000+g), journal.Running)
		})
	}
	wait.Wait()
	again, _ := open(t, path)
	want := map[string]journal.Phase{}
	for g := range goroutines {
		want[fmt.Sprint("job-", 1_000_000+g)] = journal.Running
	}
	if diff := cmp.Diff(want, left(again)); diff != "" || missed.Load() != 0 {
		t.Errorf("%d were missed; left:\n%s", missed.Load(), diff)
	}
}

func BenchmarkAttempt(b *testing.B) {
	j, _ := open(b, filepath.Join(b.TempDir(), "journal"))
	one := task(1)
	one.Worker, one.Job = "wordcount", "0193c0de-0000-7000-8000-000000000000"
	b.ReportAllocs()
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			e := j.Begin(one, journal.Running)
			e.Settle()
			e.End()
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				e := j.Begin(one, journal.Running)
				e.Settle()
				e.End()
			}
		})
	})
}
