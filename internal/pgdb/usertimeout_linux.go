package pgdb

import (
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unacknowledgedTime is how long the kernel waits for a server to acknowledge what was sent.
const unacknowledgedTime = 3 * time.Second

// limitUnacknowledged lets writes to a server that doesn't answer fail, which keepalive doesn't: it
// probes idle connections only.
func limitUnacknowledged(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var set error
	err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledgedTime.Milliseconds()))
	})
	if err == nil {
		err = set
	}
	return err
}
