// Command image-thumbnails is a worker with an entry for each step of a workflow: it lists
// the pictures of a folder, makes a thumbnail of each, and combines them on a sheet.
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"image"
	"image/jpeg"
	_ "image/png" // so that image.Decode knows them
	"os"
	"path"
	"slices"
	"strings"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func init() {
	// Done before the sandbox's memory is saved as the initial state of all jobs.
	text, _ := json.Marshal([]thumbnail{{}})
	_ = json.Unmarshal(text, &[]thumbnail{})
	_ = json.Unmarshal([]byte(`{}`), &task{})
	jobhost.Handle(list)
}

func main() {}

//go:wasmexport thumbnail
func thumbnailEntry(n uint32) uint64 { return jobhost.Entry(n, shrink) }

//go:wasmexport sheet
func sheetEntry(n uint32) uint64 { return jobhost.Entry(n, sheet) }

// task is the input for a thumbnail.
type task struct {
	File string `json:"file"`
	Size int    `json:"size"` // of the longer side
}

// thumbnail is the result for a picture.
type thumbnail struct {
	File   string `json:"file"`
	Width  int    `json:"width"` // of the picture
	Height int    `json:"height"`
	JPEG   []byte `json:"jpeg,omitempty"`
	Error  string `json:"error,omitempty"` // why there is none
}

// list returns the names of the pictures, sorted.
func list(job *jobhost.Job) ([]byte, error) {
	entries, err := os.ReadDir(folder(job))
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, e := range entries {
		if slices.Contains([]string{".png", ".jpg"}, path.Ext(e.Name())) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return json.Marshal(names)
}

func folder(job *jobhost.Job) string {
	name, _ := job.Config("folder")
	return name
}

// most is how many pixels a picture may have: the decoded picture must fit into the sandbox.
const most = 4 << 20

// shrink makes one thumbnail. A file that is not a picture is reported: it must not keep
// the others from being shown.
func shrink(job *jobhost.Job) ([]byte, error) {
	var t task
	if err := json.Unmarshal(job.Input(), &t); err != nil || t.Size < 1 || t.Size > 256 {
		return nil, jobhost.Permanent(fmt.Errorf("a task has a file and a size of 1 to 256, not %.100q", job.Input()))
	}
	data, err := os.ReadFile(path.Join(folder(job), path.Base(t.File)))
	if err != nil {
		return nil, err
	}
	out := thumbnail{File: t.File}
	if err := out.from(data, t.Size); err != nil {
		out.Error = err.Error()
	}
	return json.Marshal(out)
}

func (t *thumbnail) from(data []byte, size int) error {
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return err
	}
	t.Width, t.Height = c.Width, c.Height
	if c.Width*c.Height > most {
		return fmt.Errorf("%d × %d pixels are too many", c.Width, c.Height)
	}
	picture, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, scale(picture, size), nil); err != nil {
		return err
	}
	t.JPEG = b.Bytes()
	return nil
}

// sheet makes an HTML page of thumbnails, in order. The pictures are embedded.
func sheet(job *jobhost.Job) ([]byte, error) {
	var thumbnails []thumbnail
	if err := json.Unmarshal(job.Input(), &thumbnails); err != nil {
		return nil, jobhost.Permanent(err)
	}
	var b strings.Builder
	b.WriteString("<!doctype html>\n<title>Pictures</title>\n")
	for _, t := range thumbnails {
		name := html.EscapeString(t.File)
		if t.Error != "" {
			fmt.Fprintf(&b, "<p>%s: %s</p>\n", name, html.EscapeString(t.Error))
			continue
		}
		fmt.Fprintf(&b, "<figure><img alt=\"\" src=\"data:image/jpeg;base64,%s\"><figcaption>%s, %d × %d</figcaption></figure>\n",
			base64.StdEncoding.EncodeToString(t.JPEG), name, t.Width, t.Height)
	}
	return []byte(b.String()), nil
}
