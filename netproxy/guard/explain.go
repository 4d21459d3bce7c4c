package guard

import (
	"context"
	"errors"
	"net/netip"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/httpurl"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// Check resolves the host of a URL and reports how a request would be judged, without sending
// it. It is for operators only. For a name that can't be resolved it returns an error together
// with the verdict of the rules; other errors have code invalid.
func (t *Transport) Check(ctx context.Context, method, url string) (policy.Verdict, error) {
	u, err := httpurl.Parse(url)
	if e, ok := errors.AsType[*httpurl.Error](err); ok {
		return policy.Verdict{}, &jobhost.Error{Code: jobhost.CodeInvalid, Field: "url", Message: e.Message, Hint: e.Hint}
	}
	addrs, err := t.dialer.resolve(ctx, u.Host)
	judge := func(addr netip.Addr) error { return t.dialer.judge(netip.AddrPortFrom(addr, u.Port)) }
	return t.policy.Explain(method, u, addrs, judge), err
}
