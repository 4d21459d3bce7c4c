package workflow

import (
	"errors"
	"testing"

	"github.com/jobhost/jobhost"
)

// The hint for an input that doesn't fit can be followed as it stands.
func TestHintOfAMisfit(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"review": "GET /v1/definitions/review shows what it wants", "": ""} {
		if got := jobhost.HintOf(misfit(errors.New("missing property"), name)); got != want {
			t.Errorf("%q: got %q", name, got)
		}
	}
}
