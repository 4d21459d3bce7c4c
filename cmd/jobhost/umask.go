package main

import (
	"fmt"
	"syscall"
)

// keepPrivate lets nobody but their owner use the files and sockets that this process makes from
// now on, whoever makes them: the database with what stands beside it, copies, caches,
// the sockets of plugins.
func (e *env) keepPrivate() { e.umask = fmt.Sprintf("%04o", syscall.Umask(0o077)) }
