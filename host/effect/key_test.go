package effect_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/effect"
)

// TestReadYourWrites makes random changes by an attempt, and compares what it
// sees, and what is there when it has succeeded, with a map.
func TestReadYourWrites(t *testing.T) {
	t.Parallel()
	f := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		want := map[string]string{}
		for _, key := range []string{"a", "b", "c"} {
			if _, _, err := f.KeyValue(t.Context(), "w", key); err == nil {
				if err := f.DeleteKey(t.Context(), "w", key); err != nil {
					rt.Fatal(err)
				}
			}
			if value := rapid.SampledFrom([]string{"-", "", "7", "text"}).Draw(rt, "before "+key); value != "-" {
				f.set(key, value)
				want[key] = value
			}
		}
		a, lease := f.start()
		for range rapid.IntRange(0, 12).Draw(rt, "changes") {
			change(rt, a, want)
		}
		if job := f.settle(a, lease, jobhost.OutcomeSucceeded); job.State != jobhost.Succeeded {
			rt.Fatalf("the job is %v: %+v", job.State, job.Failures)
		}
		for _, key := range []string{"a", "b", "c"} {
			_, value, err := f.KeyValue(t.Context(), "w", key)
			if got, there := want[key]; there != (err == nil) || string(value) != got {
				rt.Fatalf("key %s is %q, %v; want %q, %v", key, value, err, got, there)
			}
		}
	})
}

// change makes a change, to an attempt and to a map, and reads it.
func change(rt *rapid.T, a *effect.Attempt, want map[string]string) {
	key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")
	name, value := []byte(key), rapid.SampledFrom([]string{"", "5", "words"}).Draw(rt, "value")
	var err error
	switch rapid.IntRange(0, 4).Draw(rt, "what") {
	case 0:
		err, want[key] = a.Set(name, []byte(value), 0), value
	case 1:
		err = a.Delete(name)
		delete(want, key)
	case 2:
		n, numberErr := strconv.Atoi(want[key])
		if _, there := want[key]; !there {
			n, numberErr = 0, nil
		}
		sum, addErr := a.Add(name, 3)
		if (addErr == nil) != (numberErr == nil) || addErr == nil && sum != int64(n+3) {
			rt.Fatalf("%q + 3 = %d, %v", want[key], sum, addErr)
		}
		if addErr == nil {
			want[key] = strconv.Itoa(n + 3)
		}
	case 3:
		var version int64
		_, version, err = a.Get(name)
		if jobhost.CodeOf(err) == jobhost.CodeNotFound {
			err = nil
		}
		if err == nil {
			err, want[key] = a.CompareAndSet(name, version, []byte(value)), value
		}
	}
	if err != nil {
		rt.Fatal(err)
	}
	got, _, err := a.Get(name)
	if expected, there := want[key]; there != (err == nil) || string(got) != expected {
		rt.Fatalf("the attempt sees %q, %v; want %q, %v", got, err, expected, there)
	}
}

// TestRepeatableReads: what an attempt has read stays as it is, and its version
// belongs to it.
func TestRepeatableReads(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.set("a", "old")
	a, lease := f.start()
	value, version, err := a.Get([]byte("a"))
	f.set("a", "new")
	again, sameVersion, againErr := a.Get([]byte("a"))
	if err != nil || againErr != nil || !bytes.Equal(value, again) || version != sameVersion {
		t.Fatalf("read %q of version %d, then %q of version %d", value, version, again, sameVersion)
	}
	f.wantCode("cas of the version that was read", a.CompareAndSet([]byte("a"), version, []byte("mine")), "", none)
	f.wantCode("cas of another version", a.CompareAndSet([]byte("a"), version+1, []byte("mine")), jobhost.CodeConflict, none)
	job := f.settle(a, lease, jobhost.OutcomeSucceeded)
	if job.State == jobhost.Succeeded || len(job.Failures) != 1 || job.Failures[0].Code != jobhost.FailConflict || !job.Failures[0].Retryable {
		t.Fatalf("the job is %v: %+v", job.State, job.Failures)
	}
	f.want("a", "new")
	// Another attempt reads the new value.
	a, lease = f.begin()
	if value, version, err = a.Get([]byte("a")); string(value) != "new" || err != nil {
		t.Fatalf("the next attempt reads %q, %v", value, err)
	}
	f.wantCode("cas", a.CompareAndSet([]byte("a"), version, []byte("mine")), "", none)
	f.wantCode("delete after it", a.Delete([]byte("a")), "", none)
	if job := f.settle(a, lease, jobhost.OutcomeSucceeded); job.State != jobhost.Succeeded {
		t.Fatalf("the job is %v: %+v", job.State, job.Failures)
	}
	f.want("a", "-")
}

// TestManyReads: an attempt may read as much as it likes.
func TestManyReads(t *testing.T) {
	t.Parallel()
	f := setup(t)
	large := strings.Repeat("x", 1<<18)
	for i := range 6 {
		f.set(fmt.Sprint("large-", i), large)
	}
	a, lease := f.start()
	f.wantCode("set", a.Set([]byte("kept"), []byte("1"), 0), "", none)
	for round := range 2 {
		for i := range 600 {
			if _, _, err := a.Get(fmt.Appendf(nil, "missing-%d", i)); jobhost.CodeOf(err) != jobhost.CodeNotFound {
				t.Fatal(err)
			}
		}
		for i := range 6 {
			if value, _, err := a.Get(fmt.Appendf(nil, "large-%d", i)); len(value) != len(large) || err != nil {
				t.Fatalf("round %d: %d bytes, %v", round, len(value), err)
			}
		}
	}
	f.settle(a, lease, jobhost.OutcomeSucceeded)
	f.want("kept", "1")
}

// TestOnlySuccessCounts: whatever else happens to an attempt, none of its
// effects are applied.
func TestOnlySuccessCounts(t *testing.T) {
	t.Parallel()
	for _, kind := range []jobhost.OutcomeKind{
		jobhost.OutcomeFailed, jobhost.OutcomeSnoozed, jobhost.OutcomeReturned,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			a, lease := f.start()
			f.wantCode("set", a.Set([]byte("a"), []byte("1"), 0), "", none)
			if _, err := a.Submit(jobhost.Spec{Worker: "small"}, false); err != nil {
				t.Fatal(err)
			}
			f.settle(a, lease, kind)
			f.want("a", "-")
			if n := f.Stats("small").Ready; n != [jobhost.Levels]int{} {
				t.Errorf("there are children: %v", n)
			}
		})
	}
}

// TestChangeLimits: an attempt may change so much and no more.
func TestChangeLimits(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.set("there", strings.Repeat("x", 100))
	a, lease := f.start()
	for i := range effect.MaxChanges {
		if err := a.Set(fmt.Appendf(nil, "key-%d", i), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	f.wantCode("one key more", a.Set([]byte("more"), nil, 0), jobhost.CodeExhausted, effect.LimitChanges)
	f.wantCode("a deletion more", a.Delete([]byte("more")), jobhost.CodeExhausted, effect.LimitChanges)
	f.wantCode("one of them again", a.Set([]byte("key-0"), []byte("x"), 0), "", none)
	if job := f.settle(a, lease, jobhost.OutcomeSucceeded); job.State != jobhost.Succeeded {
		t.Fatalf("the job is %v: %+v", job.State, job.Failures)
	}
	f.want("more", "-")
	f.want("key-0", "x")

	a, lease = f.start()
	mib := make([]byte, 1<<20)
	for i := range 7 {
		f.wantCode("a large value", a.Set(fmt.Appendf(nil, "large-%d", i), mib, 0), "", none)
	}
	f.wantCode("too much", a.Set([]byte("large-7"), mib, 0), jobhost.CodeExhausted, effect.LimitChanges)
	_, err := a.Submit(jobhost.Spec{Worker: "w", Payload: mib}, false)
	f.wantCode("too much with a job", err, jobhost.CodeExhausted, effect.LimitChanges)
	f.wantCode("less", a.Set([]byte("large-6"), nil, 0), "", none)
	f.wantCode("room again", a.Set([]byte("large-7"), mib, 0), "", none)
	f.settle(a, lease, jobhost.OutcomeFailed)
}

// TestQuota: an attempt gets an error when the worker's keys would exceed the
// quota, and fails if others were faster.
func TestQuota(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.set("old", strings.Repeat("x", 57)) // 100 with its overhead
	quota := func(c *effect.Config) { c.Quota = 200 }
	a, lease := f.start(quota)
	f.wantCode("no room", a.Set([]byte("new"), make([]byte, 60), 0), jobhost.CodeExhausted, effect.LimitQuota)
	f.wantCode("in place of the old one", a.Set([]byte("old"), make([]byte, 150), 0), "", none)
	_, err := a.Add([]byte("n"), 1)
	f.wantCode("a counter", err, jobhost.CodeExhausted, effect.LimitQuota)
	f.wantCode("less", a.Delete([]byte("old")), "", none)
	f.wantCode("room", a.Set([]byte("new"), make([]byte, 60), time.Hour), "", none)
	f.set("other", strings.Repeat("x", 150))
	job := f.settle(a, lease, jobhost.OutcomeSucceeded)
	if len(job.Failures) != 1 || job.Failures[0].Code != jobhost.FailLimit || !strings.Contains(job.Failures[0].Message, "quota of 200 bytes") {
		t.Errorf("the job is %v: %+v", job.State, job.Failures)
	}
	f.want("new", "-")
}

// TestNumbers: what can't be added to, and what can be said of a sum.
func TestNumbers(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.set("text", "1 apple")
	f.set("max", "9223372036854775807")
	a, lease := f.start()
	for _, tt := range []struct {
		key   string
		delta int64
		code  jobhost.Code
	}{
		{"text", 1, jobhost.CodeInvalid},
		{"max", 1, jobhost.CodeTooLarge},
		{"max", -1, ""},
		{"low", -1 << 63, jobhost.CodeTooLarge}, // the least numbers are errors to a guest
		{"low", -1<<63 + 256, ""},
		{"low", -1, jobhost.CodeTooLarge},
	} {
		_, err := a.Add([]byte(tt.key), tt.delta)
		f.wantCode(fmt.Sprint(tt.key, " + ", tt.delta), err, tt.code, none)
	}
	f.settle(a, lease, jobhost.OutcomeSucceeded)
	f.want("max", "9223372036854775806")
	f.want("low", "-9223372036854775552")
}

// TestNothingAsked: an attempt that only reads has no effects.
func TestNothingAsked(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.set("a", "1")
	a, lease := f.start()
	if _, _, err := a.Get([]byte("a")); err != nil {
		t.Fatal(err)
	}
	if asked := a.Take(); asked != nil {
		t.Errorf("it asked for %+v", asked)
	}
	f.settle(a, lease, jobhost.OutcomeSucceeded)
}
