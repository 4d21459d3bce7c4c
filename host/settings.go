package host

import (
	"reflect"
	"slices"

	"github.com/jobhost/jobhost/host/webhook"
)

// settings are those of a worker, which may be one of the host's own: those have no plugin.
type settings struct {
	Worker

	webhook *webhook.Settings // of the worker that delivers webhooks; nil = it is another
	defers  bool              // it makes the requests that others have left to the host
	extism  bool              // the plugin that was loaded is one of Extism, whatever ABI says
}

// own reports whether the worker is one of the host's own.
func (w *settings) own() bool { return w.webhook != nil || w.defers }

// same reports whether two workers have the same plugin and settings, be it loaded
// or not.
func (w settings) same(other settings) bool {
	w.extism, other.extism = false, false
	return reflect.DeepEqual(w, other)
}

// withOwn returns the workers together with the host's own, all with their defaults.
func withOwn(workers []Worker, hooks *webhook.Settings) []settings {
	all := make([]settings, len(workers), len(workers)+2)
	for i := range workers {
		all[i].Worker = workers[i]
	}
	if slices.ContainsFunc(workers, func(w Worker) bool { return w.HTTP != nil }) {
		all = append(all, deferringWorker())
	}
	if hooks != nil {
		all = append(all, webhookWorker(hooks))
	}
	for i := range all {
		all[i].SetDefaults()
	}
	return all
}
