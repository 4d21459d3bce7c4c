package main

import (
	"errors"

	"github.com/jobhost/jobhost"
)

// reachHint returns what to do about an error of finding the host or being let in;
// "" for others. The host's own hints are for programs: what a command sends, and why, only
// the command knows.
func (e *env) reachHint(err error) string {
	fault, ok := errors.AsType[*jobhost.Error](err)
	if !ok || e.asked == nil {
		return ""
	}
	switch {
	case fault.Code == jobhost.CodeUnavailable && fault.Field == jobhost.FieldURL:
		return e.asked.whereHint()
	case fault.Code == jobhost.CodeDenied && fault.Field == jobhost.FieldToken:
		return e.asked.tokenHint()
	}
	return ""
}

// whereHint says what to do when no host answers.
func (t *target) whereHint() string {
	switch t.addrFrom {
	case "":
		return "there is no " + defaultManifest + " here, so this is the default address: run the command in the folder of the host's manifest, or say --addr URL; to start a host: jobhost run"
	case "--addr", "JOBHOST_ADDR":
		return "the address is that of " + t.addrFrom + ": does jobhost run there? Its start prints where it listens"
	}
	return "the address is that of " + t.addrFrom + ": start the host with jobhost run; one that was started with another manifest, or before a change of listen, is reached with --addr URL"
}

// tokenHint says what to do when the host wants a token, or another one.
func (t *target) tokenHint() string {
	if t.token == "" {
		return t.noToken + ": run the command in the folder of the host's manifest, or say --token-file FILE"
	}
	return "it is from " + t.tokenFrom + ", but another host may be at this address: say --token-file FILE, as its start printed it"
}
