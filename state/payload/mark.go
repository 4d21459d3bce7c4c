package payload

import (
	"context"
	"errors"
	"fmt"
)

// Marker is a [Store] that also keeps marks: short texts that take the place of
// what was there, for hosts to tell each other of themselves. A mark is no
// object: it is in no list, and need not survive power loss.
type Marker interface {
	// SetMark keeps a text under a name, as [CheckName] allows it. A
	// reader finds the old text or the new one, whole.
	SetMark(ctx context.Context, name string, text []byte) error
	// Mark returns a text. Errors: [ErrNotFound].
	Mark(ctx context.Context, name string) ([]byte, error)
}

// MaxMarkBytes bounds a mark.
const MaxMarkBytes = 4 << 10

// ErrNoMarks says that a store keeps no marks.
var ErrNoMarks = errors.New("the payload store keeps no marks")

// SetMark keeps a mark in a store.
func (s *Set) SetMark(ctx context.Context, store, name string, text []byte) error {
	m, err := s.marker(store)
	if err == nil {
		err = m.SetMark(ctx, name, text)
	}
	if err != nil {
		return fmt.Errorf("mark payload store %s: %w", store, err)
	}
	return nil
}

// Mark returns a mark of a store. Errors: [ErrNotFound], [ErrNoMarks], those of the store.
func (s *Set) Mark(ctx context.Context, store, name string) ([]byte, error) {
	m, err := s.marker(store)
	if err != nil {
		return nil, fmt.Errorf("read mark of payload store %s: %w", store, err)
	}
	text, err := m.Mark(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read mark of payload store %s: %w", store, err)
	}
	return text, nil
}

func (s *Set) marker(store string) (Marker, error) {
	kept := s.stores[store]
	if kept == nil {
		return nil, ErrNoStore
	}
	m, ok := kept.(Marker)
	if !ok {
		return nil, ErrNoMarks
	}
	return m, nil
}
