//go:build !linux

package cgroup

import "errors"

// Open returns an error: there are no control groups here.
func Open() (*Tree, error) { return nil, errors.New("only Linux has control groups") }
