package redispayload

import (
	"time"

	"github.com/jobhost/jobhost/state/payload"
)

// Age makes an upload look as if its pieces had been written so long ago.
func Age(o payload.Object, by time.Duration) {
	u := o.(*upload)
	u.since = u.since.Add(-by)
}
