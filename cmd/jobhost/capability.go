package main

import (
	"slices"
	"strings"
)

// capability is something that a module asks the host for, in words, and the
// imports that it asks by.
type capability struct {
	Means   string   `json:"means"`
	Imports []string `json:"imports"` // as module.name, sorted
}

// meaning says what a group of imports is for. Names are those behind the
// module's; one that ends in _ stands for all that begin with it.
type meaning struct {
	means  string
	module string
	names  []string
}

// Modules that guests import from.
const (
	nativeModule = "jobhost1"
	wasiModule   = "wasi_snapshot_preview1"
	extismModule = "extism:host/env"
)

// meanings has every function that a host offers, in the order to show them; a
// test compares it with what the ABIs define.
var meanings = []meaning{
	{"fetch the payload", nativeModule, []string{"input"}},
	{"write to the result", nativeModule, []string{"output"}},
	{"say how the attempt fails", nativeModule, []string{"fail"}},
	{"ask which job this is, and for its labels and the worker's config and secrets", nativeModule, []string{"info"}},
	{"tell messages to whoever watches the job", nativeModule, []string{"emit"}},
	{"write to the job's log", nativeModule, []string{"log", "log_level"}},
	{"keep metrics of its own, as jobhost_guest_…", nativeModule, []string{"metric", "observe"}},
	{"say how far the attempt is", nativeModule, []string{"progress"}},
	{"ask for the time it has left", nativeModule, []string{"remaining"}},
	{"keep keys and values of the worker, from job to job", nativeModule, []string{"kv_"}},
	{"report how far its task is, and follow the states of its job and of others that it is granted", nativeModule, []string{"state_"}},
	{"take what a fiber is sent", nativeModule, []string{"recv"}},
	{"submit further jobs, to workers that it is granted", nativeModule, []string{"submit"}},
	{"send HTTP requests, to places that it is granted", nativeModule, []string{"http", "http_defer"}},
	{"wait for what it has begun, and for times", nativeModule, []string{"timer", "wait", "read", "drop"}},

	{"take the payload and give the result, in a memory beside its own", extismModule, []string{
		"alloc", "free", "length", "length_unsafe", "load_", "store_", "input_", "output_", "error_", "reset", "memory_bytes",
	}},
	{"read the worker's config", extismModule, []string{"config_get"}},
	{"keep variables from job to job, as the worker's keys and values", extismModule, []string{"var_"}},
	{"send HTTP requests, to hosts that are allowed", extismModule, []string{"http_"}},
	{"write to the job's log", extismModule, []string{"log_", "get_log_level"}},

	{"read its arguments", wasiModule, []string{"args_"}},
	{"read the environment: for commands the JOBHOST_ variables, else nothing", wasiModule, []string{"environ_"}},
	{"read and write its standard streams and files that it has open", wasiModule, []string{"fd_"}},
	{"open and change files, in folders that are mounted", wasiModule, []string{"path_"}},
	{"read clocks", wasiModule, []string{"clock_"}},
	{"draw random numbers", wasiModule, []string{"random_get"}},
	{"sleep, or let others run", wasiModule, []string{"poll_oneoff", "sched_yield"}},
	{"end itself", wasiModule, []string{"proc_"}},
	{"use sockets, of which there are none", wasiModule, []string{"sock_"}},
}

// matches reports whether an import belongs to the group.
func (m *meaning) matches(imported string) bool {
	name, ok := strings.CutPrefix(imported, m.module+".")
	return ok && slices.ContainsFunc(m.names, func(n string) bool {
		return n == name || strings.HasSuffix(n, "_") && strings.HasPrefix(name, n)
	})
}

// capabilities groups imports by what they mean. What is unknown is what other
// modules of the plugin offer: such are the only ones that can be loaded.
func capabilities(imports []string) []capability {
	var found []capability
	rest := slices.Clone(imports)
	for i := range meanings {
		m := &meanings[i]
		var mine []string
		rest = slices.DeleteFunc(rest, func(imported string) bool {
			if m.matches(imported) {
				mine = append(mine, imported)
				return true
			}
			return false
		})
		if len(mine) > 0 {
			found = append(found, capability{m.means, mine})
		}
	}
	if len(rest) > 0 {
		found = append(found, capability{"call modules that come with it", rest})
	}
	return found
}
