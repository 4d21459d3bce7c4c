package wasm

import (
	"context"
	"errors"
)

// NewPolling returns an engine as it is where the test of the meter fails.
func NewPolling(config Config) (*Engine, error) {
	return open(config, func(*Engine, context.Context) error { return errors.New("the meter is not to be used") })
}

// DeafMeter makes the end of its context the only thing that stops an instance.
func (i *Instance) DeafMeter() { i.stop.halt = i.cancel }

// Running is how many runs of all instances are under way.
func (e *Engine) Running() int64 { return e.dog.running.Load() }
