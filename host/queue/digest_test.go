package queue

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// TestDigest pins digests: they are in stores, where another one would make a
// conflict of a submit that is only repeated.
func TestDigest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		spec jobhost.Spec
		want string
	}{
		{"least", jobhost.Spec{Worker: "w"}, "801b2fcdebf64fded1a6621b4598fe3d"},
		{"the id is no part of it", jobhost.Spec{ID: "a", Worker: "w"}, "801b2fcdebf64fded1a6621b4598fe3d"},
		{"payload and labels", jobhost.Spec{Worker: "w", Payload: []byte("p"), Labels: map[string]string{"b": "2", "a": "1", "c": ""}}, "ccc9857bce84bfa5973d300201d7f827"},
		{
			"all", jobhost.Spec{
				Worker: "wordcount", ContentType: "text/plain", Entry: "jh_run", Priority: jobhost.High, Tasks: 3, MaxAttempts: 5,
				Timeout: time.Second, Delay: time.Minute, Labels: map[string]string{"k": "v"}, Payload: make([]byte, 1000),
			}, "81670c9659d252d6962bfd1f93e89289",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := digest(&tt.spec)
			if hex.EncodeToString(got[:]) != tt.want {
				t.Errorf("digest %x, want %s", got, tt.want)
			}
		})
	}
}

func BenchmarkDigest(b *testing.B) {
	spec := jobhost.Spec{Worker: "noop", Payload: make([]byte, 64)}
	b.ReportAllocs()
	for b.Loop() {
		digest(&spec)
	}
}
