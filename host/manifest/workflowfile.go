package manifest

import (
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/plan"
	"github.com/jobhost/jobhost/internal/text"
)

// workflowFile reads a workflow of which the section only names a file. Faults in
// it have their places there.
func (r *reader) workflowFile(path []string, table map[string]any, t *workflowText, m *Manifest) {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if name != "file" {
			r.faultKey(at(path, name), path, keyText([]string{name})+" is not possible beside file", "write it into that file, or leave file out")
		}
	}
	s := workflowSection{}
	before := len(r.faults)
	fill(r, path, map[string]any{"file": table["file"]}, workflowFields(), &s)
	if t.unread = len(r.faults) > before; t.unread {
		return
	}
	m.readFrom(WorkflowPart{t.Name, "", "file"}, s.file)
	written, err := readFile(r.dir, s.file, jobhost.MaxWorkflowBytes)
	if err != nil {
		t.unread = true
		r.faultValue(at(path, "file"), err)
		return
	}
	t.file = text.Line(showPath(r.dir, s.file), 300)
	if !filepath.IsAbs(t.file) { // as the manifest is called
		t.file = filepath.Join(filepath.Dir(r.file), t.file)
	}
	w, err := plan.Decode(written)
	if err != nil {
		t.unread = true
		r.notDecoded(t, string(written), err)
		return
	}
	t.positions, _ = locateDefinition(string(written), t.Name, w.Steps)
	if w.Name != "" && w.Name != t.Name {
		r.workflowFaults(t, &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "name", Message: "the workflow is called " + text.Quote(w.Name, text.Short) + " here, and " + t.Name + " in the manifest", Hint: "leave it out here",
		})
	}
	w.Name = t.Name
	t.Workflow = w
}

// notDecoded reports why a file is no workflow.
func (r *reader) notDecoded(t *workflowText, text string, err error) {
	where, broken := locateDefinition(text, t.Name, nil)
	t.positions = where
	syntax, ok := errors.AsType[*jsontext.SyntacticError](broken)
	if !ok {
		r.workflowFaults(t, err)
		return
	}
	before := len(r.faults)
	r.workflowFaults(t, err)
	for _, f := range r.faults[before:] { // of which there is one
		f.Line, f.Column = where.lineColumn(int(syntax.ByteOffset))
	}
}

// definition is a workflow in JSON, whose settings have the paths that they would
// have in a manifest.
type definition struct {
	positions *positions
	path      []string
	json      *jsontext.Decoder
	text      string
	name      int // where the name of the last member began
}

// maxPlaces is how deep settings are that have places: those of the retries of steps.
const maxPlaces = 4

// locate notes where the settings stand. Text that isn't JSON ends with an error that says where.
func (d *definition) locate() error {
	for {
		at := int(d.json.InputOffset())
		at += len(d.text[at:]) - len(strings.TrimLeft(d.text[at:], " \t\r\n,:"))
		container, count := d.json.StackIndex(d.json.StackDepth())
		kind := d.json.PeekKind()
		if err := d.next(kind); err != nil {
			return err
		}
		isMember := container == jsontext.KindBeginObject
		switch {
		case kind == jsontext.KindEndObject || kind == jsontext.KindEndArray:
		case isMember && count%2 == 0:
			d.name = at
		case isMember:
			d.note(place{d.name, at})
		default:
			d.note(place{at, at})
		}
	}
}

// next reads a token, or all of a value that is deeper than what has places.
func (d *definition) next(kind jsontext.Kind) error {
	if d.json.StackDepth() == maxPlaces && (kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray) {
		return d.json.SkipValue()
	}
	_, err := d.json.ReadToken()
	return err
}

// note notes where the value stands that was just read, or has begun.
func (d *definition) note(p place) {
	path := slices.Clone(d.path)
	for token := range d.json.StackPointer().Tokens() {
		switch n, err := strconv.Atoi(token); {
		case token == "steps" && len(path) == len(d.path):
			token = "step"
		case err == nil && len(path) == len(d.path)+1 && path[len(d.path)] == "step":
			token = element(n + 1)
		}
		path = append(path, token)
	}
	d.positions.note(path, p)
}

// locateDefinition returns where the settings of a definition stand in its text. If
// this isn't JSON the error says so.
func locateDefinition(text, name string, steps []jobhost.Step) (*positions, error) {
	d := &definition{positions: newPositions(text), path: []string{"workflow", name}, json: jsontext.NewDecoder(strings.NewReader(text)), text: text}
	err := d.locate()
	names := make([]string, len(steps))
	for i := range steps {
		names[i] = steps[i].Name
	}
	d.positions.rename(map[string][]string{pathKey(append(d.path, "step")): ownNames(names)})
	if err == io.EOF {
		err = nil
	}
	return d.positions, err
}
