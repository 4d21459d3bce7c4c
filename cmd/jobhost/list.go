package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// limits are the flags that bound a list.
type limits struct {
	limit int
	all   bool
}

func (l *limits) register(cmd *cobra.Command, things string) {
	cmd.Flags().IntVar(&l.limit, "limit", 50, "maximum `NUMBER` of "+things+" to list")
	cmd.Flags().BoolVar(&l.all, "all", false, "list all, whatever the limit")
}

// most returns how many things to list; 0 = all.
func (l *limits) most() (int, error) {
	switch {
	case l.all:
		return 0, nil
	case l.limit < 1:
		return 0, usagef("--limit %d is not at least 1", l.limit)
	}
	return l.limit, nil
}

// pager asks for a page of a list: up to limit elements from cursor, and the
// cursor of the next page, empty at the end.
type pager[T any] func(ctx context.Context, cursor string, limit int) (page []T, next string, err error)

// each calls do for each page, up to most elements; 0 = all. more tells that
// there are further ones.
func (ask pager[T]) each(ctx context.Context, most int, do func([]T) error) (more bool, err error) {
	cursor := ""
	for left := most; ; {
		limit := jobhost.MaxPage
		if most > 0 {
			limit = min(left, jobhost.MaxPage)
		}
		page, next, err := ask(ctx, cursor, limit)
		if err != nil {
			return false, err
		}
		if err := do(page); err != nil {
			return false, err
		}
		left -= len(page)
		switch {
		case next == "":
			return false, nil
		case most > 0 && left <= 0:
			return true, nil
		case next == cursor:
			return false, fmt.Errorf("list: the server's list does not advance")
		}
		cursor = next
	}
}

// listing says how a list is printed.
type listing[T any] struct {
	things  string // "jobs"
	columns []string
	cells   func(*T) []string
}

// print writes up to most elements, page by page: rows of a table, or a line of JSON each.
func (l *listing[T]) print(ctx context.Context, e *env, most int, ask pager[T]) error {
	t := e.newTable()
	if !e.wantsJSON() {
		t.row(l.columns...)
	}
	more, err := ask.each(ctx, most, func(page []T) error {
		for i := range page {
			if !e.wantsJSON() {
				t.row(l.cells(&page[i])...)
			} else if err := e.json(&page[i]); err != nil {
				return err
			}
		}
		t.flush()
		return e.stdout.failure()
	})
	if err == nil && more && e.stdout.terminal {
		e.note("there are more %s; --limit or --all shows them", l.things)
	}
	return err
}
