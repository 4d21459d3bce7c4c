package jobhost

import "time"

// Callback says what to do when a job has ended, whichever way. The zero value
// is nothing.
type Callback struct {
	// Worker gets a job whose payload is an [Ended] as JSON. It is submitted
	// together with the end: there is never one without the other.
	Worker string `json:"worker,omitempty"`
}

// Ended tells a [Callback] of a job that has ended.
type Ended struct {
	Job     string            `json:"job"`
	Worker  string            `json:"worker"`
	State   State             `json:"state"`
	Labels  map[string]string `json:"labels,omitempty"`
	EndedAt time.Time         `json:"ended_at"`
	// Tasks counts the job's tasks by state.
	Tasks TaskNumbers `json:"tasks"`
	// Result is what the job returned, if it has one task and that is text;
	// ResultBase64 if it is not. Both are left out when they don't fit into a payload.
	Result       string `json:"result,omitempty"`
	ResultBase64 []byte `json:"result_base64,omitempty"`
	// Failure is that of the last attempt, if the job has one task and that is dead.
	Failure *Failure `json:"failure,omitempty"`
}
