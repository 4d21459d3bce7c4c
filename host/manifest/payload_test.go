package manifest

import (
	"slices"
	"testing"
)

// TestDatabasePayloads: a host whose jobs are in PostgreSQL has its payloads there, without being told, and at most one
// store in it.
func TestDatabasePayloads(t *testing.T) {
	t.Parallel()
	folder := map[string]any{"name": "here", "kind": "file", "path": "objects", "shared": true}
	database := func(name string) map[string]any { return map[string]any{"name": name, "kind": "database"} }
	for _, c := range []struct {
		name   string
		stores []map[string]any
		want   []string // their names
		faults int
	}{
		{"nothing is said", nil, []string{"database"}, 0},
		{"it has another name", []map[string]any{database("shared")}, []string{"shared"}, 0},
		{"it is not the last", []map[string]any{database("shared"), folder}, []string{"shared", "here"}, 0},
		{"only another one is named", []map[string]any{folder}, []string{"database", "here"}, 0},
		{"it is there twice", []map[string]any{database("a"), database("b")}, []string{"a", "b"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &reader{options: setup(t), file: "manifest.toml", positions: newPositions("")}
			m := &Manifest{Dir: r.dir, Host: Host{Data: "/data", Store: Store{Driver: "postgres"}}}
			doc := map[string]any{}
			if c.stores != nil {
				doc["payload"] = map[string]any{"store": c.stores}
			}
			r.payloads(doc, m)
			var names []string
			for _, s := range m.Payload.Stores {
				names = append(names, s.Name)
			}
			if !slices.Equal(names, c.want) || len(r.faults) != c.faults {
				t.Errorf("got %v, %v", names, r.faults)
			}
			if first := m.Payload.Stores[0]; first.Kind != DatabasePayloads || first.Path != "" {
				t.Errorf("the first is %+v", first)
			}
		})
	}
}
