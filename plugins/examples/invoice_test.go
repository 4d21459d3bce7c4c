package examples_test

import (
	"os"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/toolchain"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

func TestInvoice(t *testing.T) {
	t.Parallel()
	toolchain.NeedModule(t, "quickjs-wasi")
	toolchain.NeedModule(t, "binaryen")
	module := rebuilt(t, "invoice", "../sdk/js", "node")

	order, err := os.ReadFile("invoice/order.json")
	if err != nil {
		t.Fatal(err)
	}
	page := sdktest.Call(t, module, "", string(order))
	readme, err := os.ReadFile("invoice/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "order.json\n"+page) {
		t.Errorf("the README shows another page than\n%s", page)
	}

	f := sdktest.Fail(t, module, "", `{"number": "7", "date": "today", "customer": {"name": "x"}}`)
	if f.Code != "bad_order" || f.Category != jobhost.CategoryValidation || f.Retryable || f.Message != "date must be like 2026-11-22; there are no items" {
		t.Errorf("%+v", f)
	}
}
