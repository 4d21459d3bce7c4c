package api

import (
	"net/http"
	"reflect"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// access says who may call a route.
type access uint8

const (
	open   access = iota // everybody, under any host name: it tells nothing
	reads                // without token from this machine
	writes               // with the token only
)

// route is one line of the table of routes.
type route struct {
	method, path string
	// name is the operationId of OpenAPI.
	name, summary string
	access        access
	// body is the media type of the body; empty = a body is refused.
	body    string
	query   []param
	answers []answer
	serve   func(w http.ResponseWriter, r *http.Request) error
}

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
		{"state", "Only jobs with a task in this state."},
		{"after", "Only jobs submitted at this time or later, as RFC 3339."},
		{"before", "Only jobs submitted before this time, as RFC 3339."},
		{"cursor", "Goes on where a page ended: its next."},
		{"limit", "The size of a page, 1 to 1000; left out = 50."},
	}
	aJob      = answers[jobhost.Job](200, "The job.")
	aPage     = answers[jobhost.Page](200, "A page of jobs, newest first, without their tasks and failures.")
	asItIs    = answers[wire.Submitted](202, "The time to wait ran out: the job as it is.")
	reloaded  = answers[jobhost.Reload](200, "What became of the workers.")
	taskParam = param{"task", "Only this task of the job, from 0."}
	gone      = answer{204, "It is gone.", "", nil}
)

// routes is the table of all routes.
func (a *API) routes() []route {
	table := []route{
		{"POST", "/v1/jobs", "submitJob", "Submit a job", writes, wire.JSON, []param{waitParam}, []answer{
			answers[jobhost.Receipt](201, "The job is durable. With wait: the job, ended, with its results.").waited(),
			answers[jobhost.Receipt](200, "The same job was there before. With wait: the job, ended, with its results.").waited(),
			asItIs,
		}, a.submit},
		{"POST", "/v1/jobs:batch", "submitBatch", "Submit many jobs, one per line", writes, wire.NDJSON, []param{waitParam}, []answer{
			{200, "One line per job, in their order, while they are submitted.", wire.NDJSON, []reflect.Type{reflect.TypeFor[wire.Answer]()}},
		}, a.submitBatch},
		{"GET", "/v1/jobs", "listJobs", "List jobs", reads, "", jobParams, []answer{aPage}, a.listJobs},
		{"GET", "/v1/jobs/{id}", "getJob", "Show a job", reads, "", []param{waitParam}, []answer{
			aJob, answers[jobhost.Job](202, "The time to wait ran out: the job as it is."),
		}, a.getJob},
		{"GET", "/v1/jobs/{id}/result", "getResult", "Fetch what a job returned", reads, "", []param{
			{"task", "The task, from 0; left out = the only one, or a list of all."},
		}, []answer{
			{200, "The bytes; a list of all tasks with their results if there are several and none is asked for.", wire.Bytes, nil},
		}, a.getResult},
		{"GET", "/v1/jobs/{id}/logs", "getLogs", "Show what a job's attempts logged", reads, "", nil, []answer{
			answers[[]jobhost.AttemptLog](200, "The logs, oldest first."),
		}, a.getLogs},
		{"GET", "/v1/jobs/{id}/why", "getWhy", "Say why a job is where it is", reads, "", nil, []answer{
			answers[jobhost.Why](200, "The reason."),
		}, a.getWhy},
		{"POST", "/v1/jobs/{id}/cancel", "cancelJob", "End the open tasks of a job", writes, "", []param{taskParam}, []answer{aJob}, a.cancelJob},
		{"POST", "/v1/jobs/{id}/retry", "retryJob", "Run the dead and cancelled tasks of a job again", writes, "", []param{taskParam}, []answer{aJob}, a.retryJob},
		{"DELETE", "/v1/jobs/{id}", "deleteJob", "Remove a job that has ended", writes, "", nil, []answer{gone}, a.deleteJob},
		{"GET", "/v1/workers", "listWorkers", "List the workers", reads, "", nil, []answer{
			answers[[]jobhost.WorkerStatus](200, "All workers, by name."),
		}, a.listWorkers},
		{"GET", "/v1/workers/{name}", "getWorker", "Show a worker", reads, "", nil, []answer{
			answers[jobhost.WorkerStatus](200, "The worker."),
		}, a.getWorker},
		{"POST", "/v1/workers/{name}/reload", "reloadWorker", "Load a worker anew", writes, "", nil, []answer{reloaded}, a.reload},
		{"POST", "/v1/reload", "reload", "Load anew what has changed in the manifest", writes, "", nil, []answer{reloaded}, a.reload},
		{"GET", "/v1/events", "watchEvents", "Follow what happens", reads, "", []param{
			{"job", "Only events of this job."},
			{"after", "Begin after the event of this number, as far as it is remembered; the header Last-Event-ID does the same and sees restarts too."},
		}, []answer{
			{200, "Server-sent events until one of them is called end; the data is JSON.", wire.Stream, []reflect.Type{reflect.TypeFor[jobhost.Event]()}},
		}, a.watchEvents},
		{"GET", "/healthz", "health", "Tell that the process lives", open, "", nil, []answer{answers[status](200, "It does.")}, a.health},
		{"GET", "/readyz", "ready", "Tell whether jobs are taken", open, "", nil, []answer{answers[status](200, "They are.")}, a.ready},
		{"GET", "/openapi.json", "describeAPI", "This API as OpenAPI 3.1", reads, "", nil, []answer{{200, "The document.", wire.JSON, nil}}, a.describeAPI},
	}
	table = append(table, a.deadRoutes()...)
	if a.cfg.Metrics != nil {
		table = append(table, route{
			"GET", "/metrics", "metrics", "Metrics for Prometheus", reads, "", nil,
			[]answer{{200, "The metrics.", "text/plain", nil}},
			a.metrics,
		})
	}
	return table
}
