// Command partitioned-ingest is a worker whose job has a task for each part of its
// data. Each task reports its progress, and a second worker waits until all are
// done, without polling and without using the processor.
package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func init() {
	// Done before the sandbox's memory is saved as the initial state of all jobs.
	_ = encode(summary{})
	jobhost.Handle(ingest)
}

func main() {}

// publish is the entry of the second worker.
//
//go:wasmexport publish
func publish(n uint32) uint64 { return jobhost.Entry(n, report) }

// The tags under which tasks report.
const (
	tagIngest  = "ingest"  // rows are read
	tagProcess = "process" // they are summarized
	tagExport  = "export"  // the summary is ready, in the payload
)

// summary is the result of a part.
type summary struct {
	Station string  `json:"station"`
	Rows    int     `json:"rows"`
	Bad     int     `json:"bad"`
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	Mean    float64 `json:"mean"`
	Parts   int     `json:"parts"` // of the job
}

// ingest processes the part of its task, and returns the summary.
func ingest(job *jobhost.Job) ([]byte, error) {
	rows, err := read(job)
	if err != nil {
		return nil, errors.Join(err, job.SetError(tagIngest, err))
	}
	if err := job.SetStarted(tagProcess); err != nil {
		return nil, err
	}
	s := sum(rows)
	s.Parts = job.Tasks()
	if s.Bad > 0 {
		// A warning is lower than everything else, so the job shows it until it is resolved.
		if err := job.SetWarning(tagProcess, fmt.Sprintf("%d of %d rows have no number", s.Bad, s.Rows)); err != nil {
			return nil, err
		}
	}
	if err := job.SetFinished(tagProcess); err != nil {
		return nil, err
	}
	text := encode(s)
	return text, job.SetState(tagExport, jobhost.StateFinished, "⚫ "+s.Station, text)
}

// every is after how many rows a task reports its progress.
const every = 40

// read reads the part of a task. Its folder is config.folder.
func read(job *jobhost.Job) (rows [][]string, err error) {
	folder, _ := job.Config("folder")
	f, err := os.Open(path.Join(folder, "part-"+strconv.Itoa(job.Task())+".csv"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := job.SetStarted(tagIngest); err != nil {
		return nil, err
	}
	r := csv.NewReader(f)
	r.FieldsPerRecord = 3
	if _, err := r.Read(); err != nil { // the header
		return nil, err
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, job.SetFinished(tagIngest)
		}
		if err != nil {
			return nil, err
		}
		if rows = append(rows, row); len(rows)%every == 0 {
			if err := job.SetState(tagIngest, int32(len(rows)), strconv.Itoa(len(rows))+" rows", nil); err != nil {
				return nil, err
			}
		}
	}
}

// sum summarizes rows.
func sum(rows [][]string) summary {
	s := summary{Rows: len(rows)}
	var good []float64
	for _, row := range rows {
		s.Station = row[0]
		celsius, err := strconv.ParseFloat(row[2], 64)
		if err != nil {
			s.Bad++
			continue
		}
		good = append(good, celsius)
		s.Mean += celsius
	}
	if len(good) > 0 {
		s.Min, s.Max = slices.Min(good), slices.Max(good)
		s.Mean /= float64(len(good))
	}
	return s
}

// patience is how long the second worker waits for the first one's job.
const patience = time.Minute

// report waits until all tasks of the job that its payload names are done, and
// returns a table of their results.
func report(job *jobhost.Job) ([]byte, error) {
	id := string(job.Input())
	if _, err := job.Synchronize(id+"/"+tagExport, jobhost.StateFinished, patience); err != nil {
		return nil, err
	}
	text := fmt.Appendf(nil, "%-12s %5s %4s %6s %6s %6s\n", "station", "rows", "bad", "min", "mean", "max")
	for task, parts := 0, 1; task < parts; task++ {
		state, err := job.GetState(jobhost.WithJob(id), jobhost.WithTag(tagExport), jobhost.WithTask(task))
		if err != nil {
			return nil, err
		}
		var s summary
		if err := json.Unmarshal(state.Payload, &s); err != nil {
			return nil, fmt.Errorf("the summary of task %d: %w", task, err)
		}
		parts = s.Parts
		text = fmt.Appendf(text, "%-12s %5d %4d %6.1f %6.1f %6.1f\n", s.Station, s.Rows, s.Bad, s.Min, s.Mean, s.Max)
	}
	return text, nil
}

// encode formats a summary.
func encode(s summary) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // everything in it can be encoded
	}
	return text
}
