package api

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/jobhost/jobhost"
)

const (
	tokenBytes   = 32  // of randomness in tokens made here
	minTokenBits = 128 // of tokens from elsewhere
	maxToken     = 1024
)

// LoadOrCreateToken returns the token in the file at path. When there is no
// file it makes one with a fresh token, for its owner only; its folder must be
// there. Errors: denied for a file that others may read, invalid for a weak
// token, see [CheckToken].
func LoadOrCreateToken(path string) (string, error) {
	token, err := loadToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	token, err = createToken(path)
	if errors.Is(err, fs.ErrExist) {
		return loadToken(path) // another process was faster
	}
	return token, err
}

func loadToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("open token: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("open token: %w", err)
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return "", &jobhost.Error{Code: jobhost.CodeInvalid, Message: fmt.Sprintf("token file %s is not a file", path)}
	case mode.Perm()&0o077 != 0:
		return "", &jobhost.Error{
			Code:    jobhost.CodeDenied,
			Message: fmt.Sprintf("token file %s may be used by others than its owner (mode %04o)", path, mode.Perm()),
			Hint:    fmt.Sprintf("chmod 600 %s; make a new token, by deleting the file, if others may have read it", path),
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken+2))
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if err := CheckToken(token); err != nil {
		return "", fmt.Errorf("read token from %s: %w", path, err)
	}
	return token, nil
}

func createToken(path string) (token string, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("create token: %w", err)
	}
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // never fails, as its documentation says
	token = base64.RawURLEncoding.EncodeToString(random)
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		// Half a token would be refused at the next start.
		return "", errors.Join(fmt.Errorf("write token: %w", err), os.Remove(path))
	}
	return token, nil
}

// CheckToken returns an error with code invalid unless token can be sent as a
// bearer token and may hold 128 bits: 22 characters, or 32 hexadecimal digits,
// that are not the same few over and over.
func CheckToken(token string) error {
	bits, seen := 4, map[rune]bool{}
	for _, c := range token {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		case c >= 'g' && c <= 'z', c >= 'G' && c <= 'Z', strings.ContainsRune("-._~+/=", c):
			bits = 6
		default:
			return weakToken("the token has characters that cannot be sent")
		}
		seen[c] = true
	}
	if len(token) > maxToken {
		return weakToken("the token is too long")
	}
	if len(token)*bits < minTokenBits || len(seen) < 8 {
		return weakToken("the token is easy to guess")
	}
	return nil
}

func weakToken(message string) error {
	return &jobhost.Error{
		Code: jobhost.CodeInvalid, Field: "token", Message: message,
		Hint: "use 22 or more random characters of A-Z a-z 0-9 - . _ ~ + /, or delete the token file to get a new one",
	}
}
