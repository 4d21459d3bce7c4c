package jobhost_test

import (
	"testing"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

// TestConform runs the suite of all SDKs, which is also that suite's own test.
func TestConform(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, sdktest.Subject{Module: guesttest.Build(t, "conform")})
}
