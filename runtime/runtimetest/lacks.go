package runtimetest

// ExtismLacks are the behaviours that an Extism plugin can't have.
func ExtismLacks() []string {
	return []string{
		"zero_length", "pull", "pieces", "fail_permanent", "fail_kind", "snooze", "fail_trap", "bad_pointer", "bad_result", "nope\x1b",
		"big_result", "emit_big", "wait_cancel", "progress", "sleep",
		"detailed", "no mailbox for the input", "stacks",
	}
}

// CommandLacks are those that a WASI command can't have.
func CommandLacks() []string {
	return []string{
		"zero_length", "pull", "pieces", "fail_kind", "snooze", "fail_trap", "bad_pointer", "bad_result", "nope\x1b",
		"big_result", "emit_big", "wait_cancel", "progress",
		"detailed", "echo a full mailbox", "no mailbox for the input", "stacks",
	}
}
