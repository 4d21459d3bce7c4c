package host_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/hosttest"
)

func TestHostIsAServer(t *testing.T) {
	t.Parallel()
	hosttest.Run(t, func(t testing.TB) jobhost.Server {
		h, _ := run(t, config(t))
		return h
	})
}

// The same suite, through the API and its client.
func TestHostOverHTTP(t *testing.T) {
	t.Parallel()
	hosttest.Run(t, func(t testing.TB) jobhost.Server {
		h, _ := run(t, config(t))
		token := strings.Repeat("0123456789abcdef", 4)
		face, err := api.New(api.Config{Server: h, Token: token, Ready: h.Ready})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(face)
		t.Cleanup(func() {
			face.Stop()
			server.Close()
		})
		return client.New(server.URL, token)
	})
}
