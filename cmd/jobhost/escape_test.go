package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", mostMessage)
	got := clip(long)
	if len(got) > mostMessage+30 || !utf8.ValidString(got) || !strings.HasSuffix(got, "… (8192 bytes)") {
		t.Errorf("%d bytes: %q", len(got), got[len(got)-30:])
	}
}
