package queue

import (
	"encoding/binary"
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
		want string // of versions before
		now  string
	}{
		{"least", jobhost.Spec{Worker: "w"}, "801b2fcdebf64fded1a6621b4598fe3d", "549ccd5d0b8866a222b174fc36980eb9"},
		{"the id is no part of it", jobhost.Spec{ID: "a", Worker: "w"}, "801b2fcdebf64fded1a6621b4598fe3d", "549ccd5d0b8866a222b174fc36980eb9"},
		{"payload and labels", jobhost.Spec{Worker: "w", Payload: []byte("p"), Labels: map[string]string{"b": "2", "a": "1", "c": ""}}, "ccc9857bce84bfa5973d300201d7f827", "23906414052197362437a961240b5f77"},
		{
			"all", jobhost.Spec{
				Worker: "wordcount", ContentType: "text/plain", Entry: "jh_run", Priority: jobhost.High, Tasks: 3, MaxAttempts: 5,
				Timeout: time.Second, Delay: time.Minute, Labels: map[string]string{"k": "v"}, Payload: make([]byte, 1000),
			}, "81670c9659d252d6962bfd1f93e89289", "6391bb5486105d96f54eb469585f7dfb",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			now, before := digestsOf(&tt.spec, nil)
			if hex.EncodeToString(before[:]) != tt.want || hex.EncodeToString(now[:]) != tt.now {
				t.Errorf("digests %x and %x, want %s and %s", now, before, tt.now, tt.want)
			}
		})
	}
}

// A payload that begins as an option is written is no option.
func TestDigestOfAPayloadLikeAnOption(t *testing.T) {
	t.Parallel()
	text := func(s string) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(len(s)))) + s }
	option, oldOption := digestsOf(&jobhost.Spec{Worker: "w", ConcurrencyKey: "x", Payload: []byte("p")}, nil)
	payload, oldPayload := digestsOf(&jobhost.Spec{Worker: "w", Payload: []byte(text("concurrency_key") + text("x") + "p")}, nil)
	if oldOption != oldPayload {
		t.Error("they had different digests before")
	}
	if option == payload {
		t.Error("they have one digest")
	}
}

func BenchmarkDigest(b *testing.B) {
	spec := jobhost.Spec{Worker: "noop", Payload: make([]byte, 64)}
	b.ReportAllocs()
	for b.Loop() {
		digestsOf(&spec, nil)
	}
}
