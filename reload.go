package jobhost

// WorkerChange is what a reload meant for a worker.
type WorkerChange string

// The changes.
const (
	WorkerUnchanged WorkerChange = "unchanged" // same plugin, same settings: left alone
	WorkerChanged   WorkerChange = "changed"   // its next task runs on the new version
	WorkerAdded     WorkerChange = "added"     // it takes jobs from now on, and goes on with those that were held
	WorkerRemoved   WorkerChange = "removed"   // it takes none any more; its tasks are held
)

// Reload tells what a reload did.
type Reload struct {
	// Workers are those that were looked at, sorted by name.
	Workers []WorkerReload `json:"workers"`
	// NeedsRestart names settings, such as "host.listen", that are not what the
	// host was started with. A reload leaves them alone.
	NeedsRestart []string `json:"needs_restart,omitempty"`
}

// WorkerReload tells what a reload did to one worker.
type WorkerReload struct {
	Name   string       `json:"name"`
	Change WorkerChange `json:"change"`
	// Before and SHA256 are the digests of the plugin that ran before and of the
	// one that runs now, in lower-case hex; empty = none.
	Before string `json:"before,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	// Version counts how often the host has loaded the worker, this time
	// included; 0 = it runs none.
	Version int `json:"version"`
}
