package netproxy

// Executor is a [Pool] whose Enqueue returns after the handler has. Otherwise
// it is like a [Processor]; with it tests need not wait.
type Executor struct {
	core
}

var _ Pool = (*Executor)(nil)

// NewExecutor returns a stopped executor.
func NewExecutor(cfg ProcessorConfig) *Executor {
	e := &Executor{}
	e.init(cfg)
	e.open, e.shut = func() {}, func() {}
	e.launch, e.deliver = e.run, e.handle
	e.giveBack = func(all []delivery) {
		for _, d := range all {
			e.handle(d)
		}
	}
	return e
}
