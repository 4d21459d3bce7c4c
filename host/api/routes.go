package api

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// access says who may call a route.
type access uint8

const (
	open    access = iota // without token, under any host name: it reveals nothing about this host's jobs
	figures               // without token, unless the host says otherwise
	reads                 // with the token, unless the host lets this machine read without
	writes                // with the token only
)

// route is one line of the table of routes.
type route struct {
	method, path string
	// name is the operationId of OpenAPI.
	name, summary string
	access        access
	// body is the media type of the body, [maybeJSON] for one that may be left out; empty = a body is refused.
	body    string
	query   []param
	answers []answer
	serve   func(w http.ResponseWriter, r *http.Request) error
}

// needsServer reports whether the route asks the server, rather than the process alone.
func (r *route) needsServer() bool { return r.access >= reads }

// param is a parameter of the query. Others are refused.
type param struct{ name, doc string }

// answer is a successful one; what is not is always a problem.
type answer struct {
	status    int
	doc, body string
	// models are the types that the JSON may have; none = it is no JSON of ours.
	models []reflect.Type
}

func answers[T any](status int, doc string) answer {
	return answer{status, doc, wire.JSON, []reflect.Type{reflect.TypeFor[T]()}}
}

// waited adds what a submit answers that waits.
func (a answer) waited() answer {
	a.models = append(a.models, reflect.TypeFor[wire.Submitted]())
	return a
}

var (
	waitParam = param{"wait", `Wait this long for the job to end, such as "30s".`}
	jobParams = []param{
		{"worker", "Only jobs of this worker."},
		{"parent", "Only jobs that the job of this id submitted."},
		{"state", "Only jobs with a task in this state."},
		{labelParam, "Only jobs with this label, as name=value; may be repeated."},
		{"after", "Only jobs submitted at this time or later, as RFC 3339."},
		{"before", "Only jobs submitted before this time, as RFC 3339."},
		{"cursor", "Where to go on: the next of the previous page."},
		{"limit", "The size of a page, 1 to 1000; default 50."},
	}
	keyParams = []param{
		{"prefix", "Only keys that begin with this."},
		{"cursor", "Where to go on: the next of the previous page."},
		{"limit", "The size of a page, 1 to 1000; default 50."},
	}
	aJob      = answers[jobhost.Job](200, "The job.")
	aPage     = answers[jobhost.Page](200, "A page of jobs, newest first, without their tasks and failures.")
	asItIs    = answers[wire.Submitted](202, "The time to wait is over: the job as it is now.")
	reloaded  = answers[jobhost.Reload](200, "What has changed.")
	aWorker   = answers[jobhost.WorkerStatus](200, "The worker.")
	aSchedule = answers[jobhost.Schedule](200, "The schedule.")
	taskParam = param{"task", "Only this task of the job, from 0."}
	gone      = answer{204, "It is gone.", "", nil}
)

// routes is the table of all routes.
func (a *API) routes() []route { //nolint:revive // it is a table, however long
	table := []route{
		{"POST", "/v1/jobs", "submitJob", "Submit a job", writes, wire.JSON, []param{waitParam}, []answer{
			answers[jobhost.Receipt](201, "The job is durable. With wait: the job, ended, with its results.").waited(),
			answers[jobhost.Receipt](200, "The same job existed already. With wait: the job, ended, with its results.").waited(),
			asItIs,
		}, a.submit},
		{"POST", "/v1/jobs:batch", "submitBatch", "Submit many jobs, one per line", writes, wire.NDJSON, []param{waitParam}, []answer{
			{200, "One line per job, in their order, while they are submitted.", wire.NDJSON, []reflect.Type{reflect.TypeFor[wire.Answer]()}},
		}, a.submitBatch},
		{"GET", "/v1/jobs", "listJobs", "List jobs", reads, "", jobParams, []answer{aPage}, a.listJobs},
		{"GET", "/v1/jobs/{id}", "getJob", "Show a job", reads, "", []param{waitParam}, []answer{
			aJob, answers[jobhost.Job](202, "The time to wait is over: the job as it is now."),
		}, a.getJob},
		{"GET", "/v1/jobs/{id}/result", "getResult", "Fetch the result of a job", reads, "", []param{
			{"task", "The task, from 0; default: the only one, or a list of all."},
		}, []answer{
			{200, "The bytes; a list of all tasks with their results if there are several and none is asked for.", wire.Bytes, nil},
		}, a.getResult},
		{"GET", "/v1/jobs/{id}/payload", "getPayload", "Fetch the payload of a job", reads, "", nil, []answer{
			{200, "The bytes.", wire.Bytes, nil},
		}, a.getPayload},
		{"POST", "/v1/payloads", "uploadPayload", "Upload a payload for a job", writes, wire.Bytes, nil, []answer{
			answers[jobhost.Upload](201, "It is durable, until it expires or a job takes it by its payload_ref."),
		}, a.upload},
		{"GET", "/v1/jobs/{id}/logs", "getLogs", "Show what a job's attempts logged", reads, "", nil, []answer{
			answers[[]jobhost.AttemptLog](200, "The logs, oldest first."),
		}, a.getLogs},
		{"GET", "/v1/jobs/{id}/why", "getWhy", "Explain why a job is in its state", reads, "", nil, []answer{
			answers[jobhost.Why](200, "The reason."),
		}, a.getWhy},
		{"POST", "/v1/jobs/{id}/cancel", "cancelJob", "End the open tasks of a job", writes, "", []param{taskParam}, []answer{aJob}, a.cancelJob},
		{"POST", "/v1/jobs/{id}/retry", "retryJob", "Run the dead and cancelled tasks of a job again", writes, "", []param{taskParam}, []answer{aJob}, a.retryJob},
		{"DELETE", "/v1/jobs/{id}", "deleteJob", "Remove a job that has ended", writes, "", nil, []answer{gone}, a.deleteJob},
		{"GET", "/v1/kv/{worker}", "listKeys", "List the keys of a worker", reads, "", keyParams, []answer{
			answers[jobhost.KeyPage](200, "A page of keys, in the order of their bytes, without their values."),
		}, a.listKeys},
		{"GET", "/v1/kv/{worker}/{key}", "getKey", "Fetch the value of a key", reads, "", nil, []answer{
			{200, "The bytes; what else is known of the key is in headers.", wire.Bytes, nil},
		}, a.getKey},
		{"PUT", "/v1/kv/{worker}/{key}", "setKey", "Set the value of a key", writes, wire.Bytes, []param{
			{"ttl", `How long the key lives, such as "24h"; default: until it is deleted.`},
		}, []answer{{204, "It is durable.", "", nil}}, a.setKey},
		{"DELETE", "/v1/kv/{worker}/{key}", "deleteKey", "Remove a key", writes, "", nil, []answer{gone}, a.deleteKey},
		{"GET", "/v1/workers", "listWorkers", "List the workers", reads, "", nil, []answer{
			answers[[]jobhost.WorkerStatus](200, "All workers, by name."),
		}, a.listWorkers},
		{"GET", "/v1/workers/{name}", "getWorker", "Show a worker", reads, "", nil, []answer{
			answers[jobhost.WorkerStatus](200, "The worker."),
		}, a.getWorker},
		{"POST", "/v1/workers/{name}/reload", "reloadWorker", "Reload a worker", writes, "", nil, []answer{reloaded}, a.reload},
		{"POST", "/v1/workers/{name}/pause", "pauseWorker", "Pause a worker: hold its tasks", writes, "", nil, []answer{aWorker}, a.pauseWorker},
		{"POST", "/v1/workers/{name}/drain", "drainWorker", "Drain a worker: hold its tasks and accept no jobs", writes, "", nil, []answer{aWorker}, a.drainWorker},
		{"POST", "/v1/workers/{name}/resume", "resumeWorker", "Resume a worker", writes, "", nil, []answer{aWorker}, a.resumeWorker},
		{"POST", "/v1/workers/{name}/scale", "scaleWorker", "Change how many tasks of a worker run at the same time", writes, "", []param{
			{"slots", "The number of slots, 1 to 4096."},
		}, []answer{aWorker}, a.scaleWorker},
		{"POST", "/v1/workers/{name}/reset-breaker", "resetBreaker", "Close the circuit breaker of a worker", writes, "", nil, []answer{aWorker}, a.resetBreaker},
		{"POST", "/v1/reload", "reload", "Reload what has changed in the manifest", writes, "", nil, []answer{reloaded}, a.reload},
		{"GET", "/v1/events", "watchEvents", "Follow events", reads, "", []param{
			{"job", "Only events of this job."},
			{"workflow", "Only events of this workflow and of the jobs of its steps."},
			{"worker", "Only events of this worker and of its jobs."},
			{"after", "Begin after the event of this number, as far as it is remembered; the header Last-Event-ID does the same and sees restarts too."},
		}, []answer{
			{200, "Server-sent events until one of them is called end; the data is JSON.", wire.Stream, []reflect.Type{reflect.TypeFor[jobhost.Event]()}},
		}, a.watchEvents},
		{"GET", "/healthz", "health", "Check that the process is alive", open, "", nil, []answer{answers[status](200, "The process is alive.")}, a.health},
		{"GET", "/readyz", "ready", "Check whether jobs are accepted", open, "", nil, []answer{answers[status](200, "Jobs are accepted.")}, a.ready},
		{"GET", "/openapi.json", "describeAPI", "This API as OpenAPI 3.1", open, "", nil, []answer{{200, "The document.", wire.JSON, nil}}, a.describeAPI},
	}
	table = append(table, slices.Concat(a.deadRoutes(), a.scheduleRoutes(), a.stateRoutes(), a.fiberRoutes(), a.workflowRoutes())...)
	if a.cfg.Metrics != nil {
		table = append(table, route{
			"GET", "/metrics", "metrics", "Metrics for Prometheus", figures, "", nil,
			[]answer{{200, "The metrics.", "text/plain", nil}},
			a.metrics,
		})
	}
	return table
}

func (a *API) scheduleRoutes() []route {
	return []route{
		{"GET", "/v1/schedules", "listSchedules", "List the schedules", reads, "", nil, []answer{
			answers[[]jobhost.Schedule](200, "All schedules, by name, each with its next tick."),
		}, a.listSchedules},
		{"GET", "/v1/schedules/{name}", "getSchedule", "Show a schedule with its next ticks", reads, "", nil, []answer{aSchedule}, a.getSchedule},
		{"POST", "/v1/schedules/{name}/run", "runSchedule", "Submit the job of a schedule now", writes, "", nil, []answer{
			answers[jobhost.Receipt](201, "The job is durable."),
		}, a.runSchedule},
		{"POST", "/v1/schedules/{name}/pause", "pauseSchedule", "Pause a schedule", writes, "", nil, []answer{aSchedule}, a.pauseSchedule},
		{"POST", "/v1/schedules/{name}/resume", "resumeSchedule", "Resume a schedule", writes, "", nil, []answer{aSchedule}, a.resumeSchedule},
	}
}
