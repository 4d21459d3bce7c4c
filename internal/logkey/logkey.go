// Package logkey holds the attribute keys of the host's own log lines, so that
// one thing has the same name in all of them.
package logkey

// The keys, and what their values are.
const (
	Job       = "job"       // id of a job
	Worker    = "worker"    // name of a worker
	Task      = "task"      // index of a task
	Attempt   = "attempt"   // number of an attempt, from 1
	State     = "state"     // name of a state
	Outcome   = "outcome"   // how an attempt ended
	Priority  = "priority"  // name of a priority
	Error     = "error"     // an error
	Stack     = "stack"     // of a goroutine that panicked
	Hint      = "hint"      // what to do about an error
	Code      = "code"      // code of an error or a failure
	Reason    = "reason"    // why something was done
	Duration  = "duration"  // how long something took
	Count     = "count"     // how many there are
	Bytes     = "bytes"     // how large something is
	Limit     = "limit"     // the limit that was reached
	Plugin    = "plugin"    // path of a plugin
	SHA256    = "sha256"    // digest of a plugin
	Before    = "before"    // digest of the plugin that ran before
	Breaker   = "breaker"   // key of a circuit breaker
	Mode      = "mode"      // of a worker
	Load      = "load"      // how often a worker was loaded
	Path      = "path"      // a file
	Store     = "store"     // URL of a store, without secrets
	Scope     = "scope"     // name of a scope
	Listen    = "listen"    // address that the host listens on
	Method    = "method"    // of a request
	Route     = "route"     // pattern that a request matched
	Status    = "status"    // of a response
	Request   = "request"   // id of a request
	Origin    = "origin"    // scheme, host and port that a request goes to
	Redirects = "redirects" // how many were followed
	Remote    = "remote"    // address of a peer
	Version   = "version"   // of the host
	PID       = "pid"       // of a process
	Signal    = "signal"    // name of a signal
	Setting   = "setting"   // name of a setting of the manifest
	Schedule  = "schedule"  // name of a schedule
	Fiber     = "fiber"     // id of a fiber
	Workflow  = "workflow"  // id of a workflow
	Step      = "step"      // name of a step of a workflow
	Line      = "line"      // that a guest has logged
	Payloads  = "payloads"  // name of a payload store
	Verb      = "verb"      // what is done with one
)
