package schedule_test

import (
	"fmt"
	"time"

	"github.com/jobhost/jobhost/host/schedule"
)

// A time of day that the clocks leave out is due at the change.
func ExampleTiming_Upcoming() {
	timing, err := schedule.Cron("30 2 * * *", "America/New_York")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tick := range timing.Upcoming(time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC), 3) {
		fmt.Println(tick.Format(time.RFC1123Z))
	}
	// Output:
	// Sat, 07 Mar 2026 02:30:00 -0500
	// Sun, 08 Mar 2026 03:00:00 -0400
	// Mon, 09 Mar 2026 02:30:00 -0400
}
