package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
)

// TestAddressInUse: two projects on one port.
func TestAddressInUse(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	first, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	addr := first.Addr().String()
	_, err = config.Listen(t.Context(), "tcp", addr)
	fault, ok := errors.AsType[*jobhost.Error](listenError(addr, err))
	if !ok || !strings.Contains(fault.Hint, "listen = ") {
		t.Fatalf("got %v of %v", fault, err)
	}
	want := "listen on " + addr + ": address already in use by another program"
	if runtime.GOOS == "linux" {
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		want = fmt.Sprintf("(process %d) in %s", os.Getpid(), dir)
	}
	if !strings.Contains(fault.Message, want) {
		t.Errorf("got %q, want %q", fault.Message, want)
	}
}
