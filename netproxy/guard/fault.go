package guard

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/jobhost/jobhost"
)

// Fault is the kind of failure of a request without a response. There are only
// a few, so that they can serve as failure codes.
type Fault string

// The faults.
const (
	FaultDenied     Fault = "denied"             // the policy forbids it
	FaultTimeout    Fault = "timeout"            // no answer in time
	FaultDNS        Fault = "dns"                // the name could not be resolved
	FaultTLS        Fault = "tls"                // no secure connection could be established
	FaultConnection Fault = "connection"         // the connection was refused, or broke
	FaultTooLarge   Fault = "response_too_large" // the header exceeded the limit
	FaultUnknown    Fault = "unknown"
)

// Explain classifies an error of [Transport.RoundTrip], and returns a message
// for people that reveals nothing about the network behind the host.
func Explain(err error) (Fault, string) {
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		if e.Code == jobhost.CodeDenied {
			return FaultDenied, e.Message
		}
		return FaultUnknown, e.Message
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		switch {
		case e.IsNotFound:
			return FaultDNS, "the name has no address that may be reached"
		case e.IsTimeout:
			return FaultDNS, "the name servers did not answer in time"
		}
		return FaultDNS, "the name could not be resolved"
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return FaultTLS, "the certificate is not trusted: " + e.Err.Error()
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return FaultTLS, "the answer is not TLS"
	}
	if e, ok := errors.AsType[tls.AlertError](err); ok {
		return FaultTLS, "no secure connection: " + e.Error()
	}
	if text, ok := alert(err); ok {
		return FaultTLS, "no secure connection: " + text
	}
	if _, ok := errors.AsType[errFlood](err); ok {
		return FaultTooLarge, errFlood{}.Error()
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return FaultTimeout, "no answer in time"
	}
	if strings.Contains(err.Error(), "server response headers exceeded") { // net/http has no type for it
		return FaultTooLarge, "the header of the response is too large"
	}
	if errors.Is(err, errUpgrade) {
		return FaultConnection, errUpgrade.Error()
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return FaultConnection, "no connection: " + e.Error()
	}
	return FaultConnection, "the connection broke before there was a response"
}

// alert returns the TLS alert by which one side of a handshake rejected the other.
// crypto/tls exports no type for it.
func alert(err error) (string, bool) {
	if e, ok := errors.AsType[*net.OpError](err); ok && (e.Op == "remote error" || e.Op == "local error") {
		return e.Err.Error(), true
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if text := err.Error(); strings.HasPrefix(text, "tls: ") {
			return text, true
		}
	}
	return "", false
}
