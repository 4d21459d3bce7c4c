package jobhost

import "time"

// WorkerMode says what happens to a worker's tasks. It is set by operators and
// survives restarts.
type WorkerMode string

// The modes.
const (
	WorkerRunning  WorkerMode = "running"  // jobs are accepted and run
	WorkerPaused   WorkerMode = "paused"   // jobs are accepted and held; what runs continues
	WorkerDraining WorkerMode = "draining" // no jobs are accepted, those that wait are held; what runs continues
)

// MaxSlots is the maximum number of slots of a worker.
const MaxSlots = 4096

// CheckSlots returns an error with code [CodeInvalid] unless a worker may have
// n slots: 1 to [MaxSlots].
func CheckSlots(n int) error {
	if n >= 1 && n <= MaxSlots {
		return nil
	}
	return invalid("slots", "%d slots are not between 1 and %d", n, MaxSlots)
}

// WorkerStatus describes a worker and its current state.
type WorkerStatus struct {
	Name   string `json:"name"`
	Plugin string `json:"plugin"`
	SHA256 string `json:"sha256"`
	// Version counts how often this host has loaded the worker; LoadedAt is when it last did.
	Version  int       `json:"version"`
	LoadedAt time.Time `json:"loaded_at"`
	ABI      string    `json:"abi"`
	Entry    string    `json:"entry"`
	// Mode says whether tasks are accepted and run.
	Mode WorkerMode `json:"mode"`
	// Disabled is why the worker can't run anything, whatever its mode; empty = it can.
	Disabled string `json:"disabled,omitempty"`
	// Sandbox is where it runs: inline, in the host's process, or process, in processes of its own.
	// Processes is the number of those; 0 = none.
	Sandbox   string `json:"sandbox,omitempty"`
	Processes int    `json:"processes,omitempty"`
	// Quarantine is why the plugin may not run in the host's process, whatever its settings say; empty = not
	// quarantined.
	Quarantine string `json:"quarantine,omitempty"`
	// Slots is the size of the pool, Busy how many of them run a task. PoolSize
	// is the manifest's number, which differs if the pool was scaled.
	Slots         int `json:"slots"`
	Busy          int `json:"busy"`
	PoolSize      int `json:"pool_size"`
	QueueCapacity int `json:"queue_capacity"`
	// RateLimit is a [Rate]; empty = none. ConcurrencyPerKey 0 = no limit.
	RateLimit         string `json:"rate_limit,omitempty"`
	ConcurrencyPerKey int    `json:"concurrency_per_key,omitempty"`

	// Breaker is the worker's circuit breaker; nil = it has none.
	Breaker *BreakerStatus `json:"breaker,omitempty"`

	Timeout     Duration    `json:"timeout"`
	MemoryBytes int64       `json:"memory_bytes"`
	Retry       string      `json:"retry"`
	Retention   string      `json:"retention"`
	Tasks       TaskNumbers `json:"tasks"`
}

// TaskNumbers counts tasks by the name of their state; states without tasks are omitted.
type TaskNumbers map[string]int64

// Numbers returns the counts by name, without the zeros.
func (c *Counts) Numbers() TaskNumbers {
	m := TaskNumbers{}
	for _, s := range States() {
		if c[s] != 0 {
			m[s.String()] = c[s]
		}
	}
	return m
}

// ParseWorkerMode returns the mode of that name.
func ParseWorkerMode(name string) (WorkerMode, error) {
	switch m := WorkerMode(name); m {
	case WorkerRunning, WorkerPaused, WorkerDraining:
		return m, nil
	}
	return "", Invalid("mode", "use running, paused or draining", "%s is not a mode of a worker", clip(name))
}
