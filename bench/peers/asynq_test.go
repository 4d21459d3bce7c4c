package main

import "testing"

// TestEndedTask distinguishes the script that ends a task from the others on its keys.
func TestEndedTask(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []any
		want string
	}{
		{"done", []any{"evalsha", "d1", 5, "asynq:{default}:active", "asynq:{default}:lease", "asynq:{default}:t:p-7", "asynq:{default}:processed:2026-01-02", "p-7"}, "p-7"},
		{"done, sent whole", []any{"eval", "return 1", 5, "asynq:{default}:active", "asynq:{default}:lease", "asynq:{default}:t:p-7"}, "p-7"},
		{"dequeue", []any{"evalsha", "d2", 4, "asynq:{default}:pending", "asynq:{default}:paused", "asynq:{default}:active", "asynq:{default}:lease"}, ""},
		{"put back", []any{"evalsha", "d3", 4, "asynq:{default}:active", "asynq:{default}:lease", "asynq:{default}:pending", "asynq:{default}:t:p-7"}, ""},
		{"retry", []any{"evalsha", "d4", 8, "asynq:{default}:t:p-7", "asynq:{default}:active", "asynq:{default}:lease", "asynq:{default}:retry"}, ""},
		{"no script", []any{"ping"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := endedTask(tt.args); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
