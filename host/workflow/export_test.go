package workflow

// OpenCount is how many workflows run, as the engine has counted.
func (e *Engine) OpenCount() int64 { return e.open.Load() }
