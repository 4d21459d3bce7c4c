package main

import (
	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hosttest"
)

// fakeFibers are those of a fake host: fibers of the worker "test" publish what they
// are sent, see [hosttest.Run].
type fakeFibers interface {
	jobhost.FiberRunner
	jobhost.FiberTalker
	jobhost.FiberController
}

func newFakeFibers() fakeFibers { return hosttest.NewFake(hosttest.FakeConfig{}) }
