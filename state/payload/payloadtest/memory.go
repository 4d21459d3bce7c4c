package payloadtest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/jobhost/jobhost/state/payload"
)

// Memory is a [payload.Store] in memory, for tests of what stands on one.
type Memory struct {
	mu      sync.Mutex // protects objects, marks and faults
	objects map[string][]byte
	marks   map[string][]byte
	faults  map[payload.Verb]error
}

var _ payload.Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{objects: map[string][]byte{}, marks: map[string][]byte{}, faults: map[payload.Verb]error{}}
}

// Fail makes every call fail with an error from now on; nil = none does.
func (m *Memory) Fail(err error) { m.FailOn(err, payload.Verbs()...) }

// FailOn makes the calls of some verbs fail from now on; nil = they don't.
func (m *Memory) FailOn(err error, verbs ...payload.Verb) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, verb := range verbs {
		m.faults[verb] = err
	}
}

// Take removes an object and returns a function that puts it back, as if the store had
// not shown it yet.
func (m *Memory) Take(key string) (back func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data := m.objects[key]
	delete(m.objects, key)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.objects[key] = data
	}
}

// Len returns how many objects there are.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects)
}

// Change replaces the bytes of an object by what change makes of them.
func (m *Memory) Change(key string, change func([]byte) []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[key] = change(slices.Clone(m.objects[key]))
}

func (m *Memory) do(ctx context.Context, verb payload.Verb, f func()) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults[verb] == nil {
		f()
	}
	return m.faults[verb]
}

// Create implements [payload.Store].
func (m *Memory) Create(ctx context.Context, key string) (payload.Object, error) {
	return &memoryObject{m: m, ctx: ctx, key: key}, m.do(ctx, payload.Put, func() {})
}

type memoryObject struct {
	bytes.Buffer
	m    *Memory
	ctx  context.Context
	key  string
	done bool
}

// Write implements [payload.Object].
func (o *memoryObject) Write(p []byte) (n int, err error) {
	err = o.m.do(o.ctx, payload.Put, func() { n, _ = o.Buffer.Write(p) })
	return n, err
}

// Commit implements [payload.Object].
func (o *memoryObject) Commit() error {
	err := o.m.do(o.ctx, payload.Put, func() { o.m.objects[o.key] = o.Bytes() })
	o.done = err == nil
	return err
}

// Abort implements [payload.Object].
func (o *memoryObject) Abort() {
	if !o.done {
		_ = o.m.do(context.WithoutCancel(o.ctx), payload.Delete, func() { delete(o.m.objects, o.key) })
	}
}

// Open implements [payload.Store].
func (m *Memory) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	var data []byte
	there := false
	err := m.do(ctx, payload.Get, func() { data, there = m.objects[key] })
	if err == nil && !there {
		err = payload.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// Delete implements [payload.Store].
func (m *Memory) Delete(ctx context.Context, keys []string) error {
	return m.do(ctx, payload.Delete, func() {
		for _, key := range keys {
			delete(m.objects, key)
		}
	})
}

// List implements [payload.Store].
func (m *Memory) List(ctx context.Context, after string, limit int) (keys []string, err error) {
	err = m.do(ctx, payload.List, func() {
		for _, key := range slices.Sorted(maps.Keys(m.objects)) {
			if key > after && len(keys) < limit {
				keys = append(keys, key)
			}
		}
	})
	return keys, err
}

// Close implements [payload.Store].
func (m *Memory) Close() error { return nil }
