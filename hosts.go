package jobhost

import (
	"context"
	"fmt"
	"time"
)

// HostRole says what a host of a cluster does.
type HostRole string

// The roles of hosts.
const (
	HostLeads    HostRole = "leader"  // it runs the jobs
	HostStandsBy HostRole = "standby" // it takes the leader's place when that is gone
	HostDrained  HostRole = "drained" // it was asked not to lead
	HostLost     HostRole = "lost"    // it was not heard of for a while
)

// HostStatus is a host among those that share a store.
type HostStatus struct {
	Name string   `json:"name"`
	Role HostRole `json:"role"`
	// Epoch numbers the term in which it leads, or led last if no other host has led since.
	Epoch int64 `json:"epoch,omitempty"`
	// Address is where other hosts find it.
	Address string `json:"address"`
	Version string `json:"version"`
	// Slots is how many tasks it can run at one time, and Busy how many it runs.
	Slots int `json:"slots"`
	Busy  int `json:"busy"`
	// MayLead is what its manifest says.
	MayLead bool `json:"may_lead"`
	// Wanted says that it was asked to lead a short time ago.
	Wanted bool `json:"wanted,omitempty"`
	// Since is when it began.
	Since time.Time `json:"since"`
	// Seen is how long ago it was last heard of.
	Seen Duration `json:"seen"`
}

// Cluster reports on the hosts that share a store, and says which of them is to lead. Every host answers, also while
// none leads. A host that doesn't exist is not_found, and so is everything for a host that shares no store.
type Cluster interface {
	// Hosts returns all hosts that were heard of within a day, sorted by name.
	Hosts(ctx context.Context) ([]HostStatus, error)
	// DrainHost asks a host to give up its term, and not to lead as long as another one can, until it is started anew or
	// asked to lead; conflict when no other host could lead.
	DrainHost(ctx context.Context, name string) (HostStatus, error)
	// LeadHost asks a host to lead, which ends a drain; conflict when it is lost, or its manifest keeps it from leading.
	LeadHost(ctx context.Context, name string) (HostStatus, error)
}

// maxHostName is the length of the longest name of a host.
const maxHostName = 63

// CheckHost returns an error with code invalid if name can't be that of a host.
func CheckHost(name string) error {
	for i, c := range name {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			name = ""
		}
	}
	if name == "" || len(name) > maxHostName {
		return &Error{
			Code: CodeInvalid, Field: "name", Message: "this can't be the name of a host",
			Hint: fmt.Sprintf("1 to %d of a-z A-Z 0-9 . _ -, beginning with a letter or digit", maxHostName),
		}
	}
	return nil
}
