package main

import (
	"fmt"
	"syscall"
)

// keepPrivate makes all files and sockets that this process creates from now on usable by their
// owner only: the database with what stands beside it, copies, caches, and the sockets of
// plugins. The umask covers those that libraries create, too.
func (e *env) keepPrivate() { e.umask = fmt.Sprintf("%04o", syscall.Umask(0o077)) }
