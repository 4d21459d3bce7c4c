package jobhost_test

import (
	"testing"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

// TestConform runs the suite of all SDKs, whose own test this is too.
func TestConform(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, sdktest.Subject{Module: guesttest.Build(t, "conform")})
}
