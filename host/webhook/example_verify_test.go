package webhook_test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// verify reports whether a request with this header and body was signed with the
// secret, which begins with whsec_, less than five minutes from now.
func verify(secret string, h http.Header, body []byte, now time.Time) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	seconds, err2 := strconv.ParseInt(h.Get("Webhook-Timestamp"), 10, 64)
	if err != nil || err2 != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", h.Get("Webhook-Id"), seconds, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for signature := range strings.FieldsSeq(h.Get("Webhook-Signature")) {
		if hmac.Equal([]byte(signature), []byte(want)) {
			return true
		}
	}
	return false
}

// Receivers verify messages with a few lines, or a library of Standard Webhooks.
func Example_verify() {
	h := http.Header{}
	h.Set("Webhook-Id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	h.Set("Webhook-Timestamp", "1614265330")
	h.Set("Webhook-Signature", "v1,c29tZWJvZHkgZWxzZSdz v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	at := time.Unix(1614265330, 0)
	fmt.Println(verify(secret, h, []byte(`{"test": 2432232314}`), at))
	fmt.Println(verify(secret, h, []byte(`{"test": 2432232315}`), at))
	fmt.Println(verify(secret, h, []byte(`{"test": 2432232314}`), at.Add(time.Hour)))
	// Output:
	// true
	// false
	// false
}

// TestDocs checks that docs/webhooks.md shows the function above, and a message
// that it verifies.
func TestDocs(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(text, begin, end string) string {
		_, rest, ok := strings.Cut(text, begin)
		inside, _, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("there is no %q", begin)
		}
		return inside
	}
	source, err := os.ReadFile("example_verify_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if want := "func verify(" + block(string(source), "func verify(", "\n}\n") + "\n}\n"; !strings.Contains(block(string(data), "```go\n", "```\n"), want) {
		t.Errorf("the docs don't show\n%s", want)
	}
	head, body, _ := strings.Cut(strings.TrimSuffix(block(string(data), "```http\n", "```\n"), "\n"), "\n\n")
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n" + body)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(req.Body)
	if err != nil || string(got) != body {
		t.Fatalf("the length is wrong: %v", err)
	}
	if !verify("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", req.Header, got, time.Unix(1795300804, 0)) {
		t.Error("the signature of the message in the docs is wrong")
	}
}
