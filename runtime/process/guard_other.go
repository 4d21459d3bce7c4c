//go:build !linux

package process

import "syscall"

// guardAttributes start a guard.
func guardAttributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// guardedAttributes start a plugin. It is in the group of its guard, which the host kills as a whole.
func guardedAttributes() *syscall.SysProcAttr { return nil }

// becomeReaper can't be done here: what leaves its group and its parent is lost track of.
func becomeReaper() error { return nil }

// hideOthers can't be done here.
func hideOthers() error { return nil }

func reap() {}
