// Command dupfiles finds files that exist more than once. It is a worker that is a process of its own, since it
// does what a sandbox can't: it reads a folder of the machine, using all processors.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/process"
)

func main() {
	d := &dupfiles{}
	process.Worker{Handler: d.handle, Start: d.start}.Serve()
}

// dupfiles is the worker. It is immutable once started.
type dupfiles struct {
	root *os.Root // jobs may only ask for what is below it
}

// start opens the folder of the configuration. A worker without one is not loaded.
func (d *dupfiles) start(_ context.Context, host process.Host) (err error) {
	folder, ok := host.Config["root"]
	if !ok {
		return errors.New(`config.root is missing: the folder in which jobs may look, such as root = "/srv/files"`)
	}
	d.root, err = os.OpenRoot(folder)
	return err
}

// query is the payload of a job.
type query struct {
	Folder string `json:"folder"` // below the root; empty = the whole root
	Least  int64  `json:"least"`  // minimum file size in bytes; 0 = 1
}

// report is the result of a job.
type report struct {
	Files     int     `json:"files"` // that were examined
	Wasted    int64   `json:"wasted"`
	Duplicate []group `json:"duplicates"` // the most wasteful first
}

// group are files with the same content.
type group struct {
	Bytes  int64    `json:"bytes"` // of each file
	SHA256 string   `json:"sha256"`
	Paths  []string `json:"paths"`
}

func (d *dupfiles) handle(ctx context.Context, job *process.Job) ([]byte, error) {
	q := query{Folder: "."}
	if err := json.Unmarshal(job.Input(), &q); err != nil {
		return nil, refused(err)
	}
	if q.Folder == "" {
		q.Folder = "."
	}
	folder, err := d.root.OpenRoot(q.Folder) // which no link and no .. can leave
	if err != nil {
		return nil, refused(err)
	}
	defer func() { _ = folder.Close() }()
	files, err := list(ctx, folder.FS(), max(q.Least, 1))
	if err != nil {
		return nil, err
	}
	s := search{fs: folder.FS(), job: job, seen: job.Counter("hashed_bytes")}
	groups, err := s.run(ctx, files)
	if err != nil {
		return nil, err
	}
	r := report{Files: len(files), Duplicate: groups}
	for _, g := range groups {
		r.Wasted += g.Bytes * int64(len(g.Paths)-1)
	}
	return json.Marshal(r)
}

// refused marks an error as one that no further attempt can cure.
func refused(err error) error {
	return &jobhost.Failure{
		Err:  fmt.Errorf(`the payload is such as {"folder": "pictures", "least": 1024}: %w`, err),
		Code: "bad_query", Category: jobhost.Validation, Permanent: true,
	}
}
