package host

// Load tells how many tasks the host can run at one time, and how many it runs.
func (h *Host) Load() (slots, busy int) {
	r := h.running.Load()
	if r == nil {
		return 0, 0
	}
	for _, w := range r.workers() {
		slots += w.pool.Size()
	}
	return slots, h.busy()
}
