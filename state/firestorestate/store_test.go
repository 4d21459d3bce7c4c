package firestorestate_test

import (
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/jobhost/jobhost/internal/testing/firestorefake"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/firestorestate"
	"github.com/jobhost/jobhost/state/statetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a fake that ends with the test, and returns its address.
func serve(t testing.TB, fake *firestorefake.Server, opts ...grpc.ServerOption) string {
	t.Helper()
	return firestorefake.Serve(t, fake, opts...)
}

// at returns options for a server without TLS.
func at(address string) firestorestate.Options {
	return firestorestate.Options{
		Project: "test",
		Client: []option.ClientOption{
			option.WithEndpoint(address), option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		},
		Backoff: firestorestate.Backoff{First: 10 * time.Millisecond, Max: 100 * time.Millisecond},
	}
}

// open opens a store that is closed with the test.
func open(t testing.TB, opts firestorestate.Options) *firestorestate.Store {
	t.Helper()
	s, err := firestorestate.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// harness gives each test of the suite a server of its own.
func harness(options func(t testing.TB) firestorestate.Options) statetest.Harness {
	var made sync.Map // the options of each store
	opened := func(t testing.TB, opts firestorestate.Options) state.Store {
		s := open(t, opts)
		made.Store(s, opts)
		return s
	}
	return statetest.Harness{
		Open: func(t testing.TB) state.Store { return opened(t, options(t)) },
		Reopen: func(t testing.TB, s state.Store) state.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			opts, _ := made.Load(s)
			return opened(t, opts.(firestorestate.Options))
		},
		Late: true,
	}
}

// TestFake runs the suite on the fake.
func TestFake(t *testing.T) {
	t.Parallel()
	statetest.Run(t, harness(func(t testing.TB) firestorestate.Options { return at(serve(t, firestorefake.New())) }))
}
