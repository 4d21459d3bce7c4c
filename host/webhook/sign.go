package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

// Key signs messages. Printing it doesn't reveal it.
type Key struct {
	// A pointer, so that fmt shows an address even where it can't call Format.
	secret *[]byte
}

// Limits of a key, from the Standard Webhooks specification.
const (
	minKeyBytes = 24
	maxKeyBytes = 64
	keyPrefix   = "whsec_"
	newKeyHint  = `echo "whsec_$(openssl rand -base64 32)" makes one`
)

// ParseKey parses a secret in the format of the Standard Webhooks specification:
// whsec_ and the key in base64. Its errors contain no part of the secret.
func ParseKey(text string) (Key, error) {
	encoded, ok := strings.CutPrefix(text, keyPrefix)
	secret, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !ok || err != nil || len(secret) < minKeyBytes || len(secret) > maxKeyBytes {
		return Key{}, &jobhost.Error{
			Code:    jobhost.CodeInvalid,
			Message: fmt.Sprintf("the secret is not %s and %d to %d bytes as base64", keyPrefix, minKeyBytes, maxKeyBytes),
			Hint:    newKeyHint,
		}
	}
	return Key{&secret}, nil
}

// Equal reports whether both keys make the same signatures.
func (k Key) Equal(other Key) bool {
	return k.secret == other.secret || k.secret != nil && other.secret != nil && bytes.Equal(*k.secret, *other.secret)
}

// String returns "[secret]".
func (Key) String() string { return "[secret]" }

// Format implements [fmt.Formatter] for every verb and flag.
func (k Key) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, k.String()) }

// sign returns the value of the header webhook-signature: a signature for each key.
func sign(keys []Key, id string, at time.Time, body []byte) string {
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, *key.secret)
		_, _ = io.WriteString(mac, id+"."+strconv.FormatInt(at.Unix(), 10)+".") // a hash takes everything
		_, _ = mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
