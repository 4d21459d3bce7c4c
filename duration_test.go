package jobhost_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

func TestDurationText(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, tc := range []struct {
		text string
		want time.Duration
		back string // empty = text
	}{
		{"0s", 0, ""},
		{"250ms", 250 * time.Millisecond, ""},
		{"90s", 90 * time.Second, "1m30s"},
		{"60m", time.Hour, "1h"},
		{"1h30m", 90 * time.Minute, ""},
		{"24h", day, "1d"},
		{"30d", 30 * day, ""},
		{"36h", 36 * time.Hour, ""},
		{"106751d", 106751 * day, ""},
		{"-24h", -day, "-24h"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			t.Parallel()
			d, err := jobhost.ParseDuration(tc.text)
			if err != nil || time.Duration(d) != tc.want {
				t.Fatalf("got %v, %v", d, err)
			}
			want := tc.back
			if want == "" {
				want = tc.text
			}
			if d.String() != want {
				t.Errorf("written as %q, want %q", d, want)
			}
		})
	}
	for _, bad := range []string{"", "5", "d", "-1d", "1.5d", "1d2h", "106752d", "99999999999999999999d", "1y", "30 s", "1e3s"} {
		if d, err := jobhost.ParseDuration(bad); jobhost.CodeOf(err) != jobhost.CodeInvalid || jobhost.HintOf(err) == "" {
			t.Errorf("%q is %v: %v", bad, d, err)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"1h", "30d", "0", "-5s", "1.5h", "106751d", "2562047h47m16.854775807s", "9999999h", "+1d", "µs", "1us"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := jobhost.ParseDuration(text)
		if err != nil {
			return
		}
		back, err := jobhost.ParseDuration(d.String())
		if err != nil || back != d {
			t.Fatalf("%q is %d, written %q, read as %d: %v", text, int64(d), d, int64(back), err)
		}
	})
}

func FuzzDurationString(f *testing.F) {
	for _, n := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64, int64(time.Hour), int64(65536 * 24 * time.Hour)} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, n int64) {
		var back jobhost.Duration
		text, err := json.Marshal(jobhost.Duration(n))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &back); err != nil || int64(back) != n {
			t.Fatalf("%d is written %s and read as %d: %v", n, text, int64(back), err)
		}
	})
}

func ExampleParseDuration() {
	d, _ := jobhost.ParseDuration("7d")
	fmt.Println(time.Duration(d).Hours(), d)
	_, err := jobhost.ParseDuration("10")
	fmt.Println(err)
	// Output:
	// 168 7d
	// "10" is not a duration
}
