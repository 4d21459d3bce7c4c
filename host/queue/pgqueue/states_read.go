package pgqueue

import (
	"context"
	"fmt"
)

// StatesOf implements [record.StateReader].
func (s *Store) StatesOf(ctx context.Context, id string) (noted, gone bool, err error) {
	if !storable(id) {
		return false, false, nil
	}
	err = s.ask(ctx, func() {}, []any{&noted, &gone}, func() error { return nil },
		"SELECT EXISTS(SELECT FROM jobhost.states_noted WHERE id=$1), EXISTS(SELECT FROM jobhost.states_gone WHERE id=$1)", id)
	if err != nil {
		return false, false, fmt.Errorf("read of which jobs there are states: %w", err)
	}
	return noted, gone, nil
}

// StatesGone implements [record.StateReader].
func (s *Store) StatesGone(ctx context.Context, after string, limit int) ([]string, error) {
	ids, err := s.texts(ctx, "SELECT id FROM jobhost.states_gone WHERE id>$1 ORDER BY id LIMIT $2", after, limit)
	if err != nil {
		return nil, fmt.Errorf("read of which jobs the states are gone: %w", err)
	}
	return ids, nil
}

// texts returns the rows of a query with one column of texts.
func (s *Store) texts(ctx context.Context, sql string, args ...any) (list []string, err error) {
	var text string
	err = s.ask(ctx, func() { list = nil }, []any{&text}, func() error {
		list = append(list, text)
		return nil
	}, sql, args...)
	return list, err
}
