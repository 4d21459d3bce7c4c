package webhook

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

func key(t testing.TB, text string) Key {
	t.Helper()
	k, err := ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The example of the Standard Webhooks libraries.
const (
	exampleKey       = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	exampleSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

func TestSign(t *testing.T) {
	t.Parallel()
	at, body := time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`)
	old, next := key(t, exampleKey), key(t, "whsec_"+strings.Repeat("bmV3", 8))
	if got := sign([]Key{old}, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body); got != exampleSignature {
		t.Errorf("got %s, want %s", got, exampleSignature)
	}
	both := strings.Split(sign([]Key{next, old}, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body), " ")
	if len(both) != 2 || both[1] != exampleSignature || both[0] == exampleSignature || !strings.HasPrefix(both[0], "v1,") {
		t.Errorf("two keys make %q", both)
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	of := func(n int) string { return "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for _, n := range []int{24, 32, 64} {
		key(t, of(n))
	}
	for _, text := range []string{"", "whsec_", of(23), of(65), strings.TrimPrefix(exampleKey, "whsec_"), exampleKey + "=", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaL*Sw"} {
		_, err := ParseKey(text)
		if jobhost.CodeOf(err) != jobhost.CodeInvalid || jobhost.HintOf(err) == "" {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && len(text) > 12 && strings.Contains(err.Error()+jobhost.HintOf(err), text[8:]) {
			t.Errorf("the error repeats the secret: %v", err)
		}
	}
}

// A key is not in anything that is printed, however it got there.
func TestKeyNeverPrints(t *testing.T) {
	t.Parallel()
	k := key(t, exampleKey)
	settings := DefaultSettings()
	settings.Keys = []Key{k}
	data, err := json.Marshal(settings.Keys)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", k, "settings", settings)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", k, "settings", settings)
	text := string(data) + log.String() + fmt.Sprintf("%v %+v %#v %s %q %x %d %v %+v %#v", k, k, k, k, k, k, k, settings, &settings, settings)
	raw := *k.secret
	for _, shown := range []string{string(raw), fmt.Sprintf("%d", raw), fmt.Sprintf("%x", raw), fmt.Sprintf("%X", raw), base64.StdEncoding.EncodeToString(raw), fmt.Sprintf("%#v", raw)} {
		if strings.Contains(text, shown) {
			t.Errorf("the key is printed as %q", shown)
		}
	}
	if !k.Equal(key(t, exampleKey)) || k.Equal(Key{}) || !(Key{}).Equal(Key{}) {
		t.Error("keys are not compared by what they are")
	}
}
