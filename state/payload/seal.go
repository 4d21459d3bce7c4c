package payload

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/tink-crypto/tink-go/v2/streamingaead/subtle"
)

// Key seals objects. Its id stands in their references.
type Key struct {
	ID     string
	Secret []byte // [SecretBytes]
}

// SecretBytes is the length of a key: that of AES-256.
const SecretBytes = 32

// ParseSecret reads the secret of a key: 32 bytes as 64 hex digits or as base64.
func ParseSecret(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if secret, err := decode(text); err == nil && len(secret) == SecretBytes {
			return secret, nil
		}
	}
	return nil, errors.New("a key is 32 random bytes, as 64 hex digits or as base64")
}

// sealSegment is how many bytes are sealed together.
const sealSegment = 64 << 10

// seal encrypts streams in segments by AES-256-GCM, each stream under a key of
// its own that follows from the secret and a random salt (HKDF with SHA-256), so
// no number of objects wears a key out. Segments can't be left out, moved or
// cut off.
type seal struct{ *subtle.AESGCMHKDF }

func (k Key) seal() (*seal, error) {
	if err := CheckName(k.ID); err != nil {
		return nil, err
	}
	if len(k.Secret) != SecretBytes {
		return nil, fmt.Errorf("its secret has %d bytes, not %d", len(k.Secret), SecretBytes)
	}
	s, err := subtle.NewAESGCMHKDF(k.Secret, "SHA256", SecretBytes, sealSegment, 0)
	if err != nil {
		return nil, err
	}
	return &seal{s}, nil
}

// sealedWith is what a sealed stream is bound to, so that an object can't be put
// in the place of another one.
func sealedWith(key string) []byte { return []byte("jobhost payload " + key) }
