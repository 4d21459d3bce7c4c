//go:build !linux

package cgroup

import "errors"

// Open says that there are no control groups here.
func Open() (*Tree, error) { return nil, errors.New("only Linux has control groups") }
