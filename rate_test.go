package jobhost_test

import (
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

func TestParseRate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       jobhost.Rate
		shown      string // "" = as it was written
	}{
		{"a second", "100/s", jobhost.Rate{Count: 100, Per: time.Second}, ""},
		{"a minute", "30/m", jobhost.Rate{Count: 30, Per: time.Minute}, ""},
		{"a day", "1/d", jobhost.Rate{Count: 1, Per: 24 * time.Hour}, ""},
		{"some seconds", "1/10s", jobhost.Rate{Count: 1, Per: 10 * time.Second}, ""},
		{"a one that is not needed", "5/1s", jobhost.Rate{Count: 5, Per: time.Second}, "5/s"},
		{"milliseconds", "2/ms", jobhost.Rate{Count: 2, Per: time.Millisecond}, "2/1ms"},
		{"the most", "1000000/s", jobhost.Rate{Count: 1_000_000, Per: time.Second}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := jobhost.ParseRate(test.text)
			if err != nil || got != test.want {
				t.Fatalf("got %+v, %v", got, err)
			}
			if test.shown == "" {
				test.shown = test.text
			}
			if got.String() != test.shown {
				t.Errorf("%+v is shown as %s, want %s", got, got, test.shown)
			}
		})
	}
	for _, text := range []string{"", "100", "/s", "0/s", "-1/s", "+1/s", "01/s", "1000001/s", "1/", "1/0s", "1/2d", "1/-1s", "1/x", "1/1s/s", "1000000/ns", "1 /s"} {
		t.Run("not "+text, func(t *testing.T) {
			t.Parallel()
			if got, err := jobhost.ParseRate(text); jobhost.CodeOf(err) != jobhost.CodeInvalid {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// A parsed rate stays the same when its text is parsed again.
func FuzzParseRate(f *testing.F) {
	for _, seed := range []string{"100/s", "30/m", "1/10s", "1/1h30m", "7/1ms", "1/", "x", "9999999/s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := jobhost.ParseRate(text)
		if err != nil {
			return
		}
		again, err := jobhost.ParseRate(r.String())
		if err != nil || again != r || r.Every() <= 0 {
			t.Errorf("%q is %+v, which is %+v when it is read again (%v)", text, r, again, err)
		}
	})
}
