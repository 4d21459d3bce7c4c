package jobhost

import "math/rand/v2"

// A worker is initialised once, and its memory is reset to that moment after every job, unless the manifest
// gives it another isolation. Seeds drawn before that are the same in every job: those of the top-level
// functions of math/rand and math/rand/v2, and those of maps. Go has no way to reseed them (rand.Seed does
// nothing since Go 1.24), so what must differ between jobs has to come from Job.Rand or from crypto/rand,
// which asks the host each time.

// generator is the source of Job.Rand, shared by all jobs of an instance.
var generator struct {
	source rand.ChaCha8
	seeded bool
}

// Rand returns a generator of random numbers that differ from job to job,
// unlike those of rand.IntN and the like, which repeat in every job: a sandbox
// is reset after each, including the state of its generators. The host seeds it
// on first use, so that jobs that don't need it don't pay for it. Goroutines
// must not share it. For keys and tokens use crypto/rand, which is safe in
// workers.
func (j *Job) Rand() *rand.Rand {
	if !generator.seeded {
		var seed [32]byte
		entropy(seed[:])
		generator.source.Seed(seed)
		generator.seeded = true
	}
	return rand.New(&generator.source)
}

// woken are the functions to call after a reset.
var woken []func()

// OnWake registers f to be called before each job whose sandbox was reset, or is a copy of one that was
// initialised: with the isolation "job", every job; with "instance", the first one of each sandbox;
// with "fresh", none. There a worker renews what it obtained during initialisation and must not repeat,
// such as a generator of its own or the time of its start. Call it from an init function. f can't ask
// the host for anything about the job, and should be quick: it counts towards the job's time and fuel.
func OnWake(f func()) { woken = append(woken, f) }

// wake is jh_wake.
func wake() {
	generator.seeded = false
	for _, f := range woken {
		f()
	}
}
