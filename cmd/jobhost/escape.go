package main

import (
	"fmt"

	"github.com/jobhost/jobhost/internal/text"
)

// mostMessage bounds the messages that are shown, in bytes: a server or a
// worker wrote them.
const mostMessage = 4 << 10

// printable returns s in one line that no terminal takes for a command.
func printable(s string) string { return text.Escape(s, "") }

// clip shortens a message.
func clip(s string) string {
	if len(s) <= mostMessage {
		return s
	}
	return fmt.Sprintf("%s (%d bytes)", text.Clip(s, mostMessage), len(s))
}
