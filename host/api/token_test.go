package api_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api"
)

func TestTokenFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	first, err := api.LoadOrCreateToken(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := api.CheckToken(first); err != nil || len(first) != 43 {
		t.Errorf("got token %q: %v", first, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v; want 0600", info.Mode(), err)
	}
	again, err := api.LoadOrCreateToken(path)
	if err != nil || again != first {
		t.Errorf("got %q, %v; want the same token", again, err)
	}
	other, err := api.LoadOrCreateToken(filepath.Join(t.TempDir(), "token"))
	if err != nil || other == first {
		t.Errorf("got %q, %v; want another token", other, err)
	}
}

func TestTokenFileRefused(t *testing.T) {
	t.Parallel()
	const good = "0123456789abcdefghijklmnopqrstuv\n"
	tests := []struct {
		name, text string
		mode       os.FileMode
		code       jobhost.Code
	}{
		{"good", good, 0o600, ""},
		{"read-only", good, 0o400, ""},
		{"for the group", good, 0o640, jobhost.CodeDenied},
		{"for everybody", good, 0o604, jobhost.CodeDenied},
		{"writable by others", good, 0o602, jobhost.CodeDenied},
		{"empty", "", 0o600, jobhost.CodeInvalid},
		{"short", "secret", 0o600, jobhost.CodeInvalid},
		{"short hex", "0123456789abcdef0123456789abcde", 0o600, jobhost.CodeInvalid},
		{"monotonous", strings.Repeat("ab", 40), 0o600, jobhost.CodeInvalid},
		{"two lines", good + good, 0o600, jobhost.CodeInvalid},
		{"a space", "0123456789abcdefghij klmnopqrstuv", 0o600, jobhost.CodeInvalid},
		{"not ASCII", "0123456789abcdefghijklmnopqrstuvü", 0o600, jobhost.CodeInvalid},
		{"endless", strings.Repeat(good[:32], 100), 0o600, jobhost.CodeInvalid},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, test.mode); err != nil {
				t.Fatal(err)
			}
			token, err := api.LoadOrCreateToken(path)
			if jobhost.CodeOf(err) != test.code {
				t.Errorf("got error %v, want code %q", err, test.code)
			}
			// The path, whose number may be anything, is not what is looked at.
			if err != nil && len(test.text) > 2 && strings.Contains(strings.ReplaceAll(err.Error(), path, ""), test.text[:3]) {
				t.Errorf("the error tells the token: %v", err)
			}
			if (token == "") != (err != nil) {
				t.Errorf("got token %q with error %v", token, err)
			}
		})
	}
	if _, err := api.LoadOrCreateToken(t.TempDir()); err == nil {
		t.Error("a folder was taken for a token")
	}
	if _, err := api.LoadOrCreateToken(filepath.Join(t.TempDir(), "none", "token")); err == nil {
		t.Error("a folder was made")
	}
}

func TestNewRefusesWeakTokens(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "secret", strings.Repeat("a", 64)} {
		if _, err := api.New(api.Config{Server: api.Serving(struct{ jobhost.Server }{}), Token: token}); jobhost.CodeOf(err) != jobhost.CodeInvalid {
			t.Errorf("token %q: got error %v", token, err)
		}
	}
	if _, err := api.New(api.Config{Token: token}); err == nil {
		t.Error("no server: got no error")
	}
}

// TestTokenAtOnce starts many hosts at once over one file. Whoever finds it
// half written is refused; all others have the same token.
func TestTokenAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	tokens := make([]string, 16)
	var group sync.WaitGroup
	for i := range tokens {
		group.Go(func() { tokens[i], _ = api.LoadOrCreateToken(path) })
	}
	group.Wait()
	want, err := api.LoadOrCreateToken(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range tokens {
		if got != "" && got != want {
			t.Errorf("got tokens %q and %q", got, want)
		}
	}
}
