package js_test

import (
	"testing"

	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

func BenchmarkHello(b *testing.B) { sdktest.Bench(b, build(b, "hello/hello.js"), "Ada") }

// BenchmarkJSON reads an object, works a little with it, and writes it.
func BenchmarkJSON(b *testing.B) {
	sdktest.Bench(b, build(b, "testdata/order.js"), `{"customer":7,"items":[{"price":2,"n":3},{"price":1.5,"n":2}]}`)
}
