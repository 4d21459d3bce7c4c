package jobhost

// WorkerChange is the effect of a reload on a worker.
type WorkerChange string

// The changes.
const (
	WorkerUnchanged WorkerChange = "unchanged" // same plugin, same settings: left alone
	WorkerChanged   WorkerChange = "changed"   // its next task runs on the new version
	WorkerAdded     WorkerChange = "added"     // it takes jobs from now on, and resumes those that were held
	WorkerRemoved   WorkerChange = "removed"   // it takes no more jobs; its tasks are held
)

// Reload is the result of a reload.
type Reload struct {
	// Workers lists the workers that were considered, sorted by name.
	Workers []WorkerReload `json:"workers"`
	// NeedsRestart names settings, such as "host.listen", that differ from
	// those the host was started with. A reload does not apply them.
	NeedsRestart []string `json:"needs_restart,omitempty"`
}

// WorkerReload is the effect of a reload on one worker.
type WorkerReload struct {
	Name   string       `json:"name"`
	Change WorkerChange `json:"change"`
	// Before and SHA256 are the digests of the plugin that ran before and of the
	// one that runs now, in lower-case hex; empty = none.
	Before string `json:"before,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	// Version counts how often the host has loaded the worker, including this
	// time; 0 = it is not loaded.
	Version int `json:"version"`
}
