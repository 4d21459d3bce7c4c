package manifest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	const value = "swordfish"
	type outer struct {
		Public Secret
		Map    map[string]Secret
		inner  Secret // fmt can't call its methods
	}
	s := NewSecret(value)
	all := outer{Public: s, Map: map[string]Secret{"k": s}, inner: s}
	var log strings.Builder
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("m", "s", s, "all", all, "map", all.Map)
	}
	encoded, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	printed := log.String() + string(encoded)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s", "%T"} {
		printed += fmt.Sprintf(verb, s) + fmt.Sprintf(verb, &s) + fmt.Sprintf(verb, all) + fmt.Sprintf(verb, &all)
	}
	for _, form := range []string{value, fmt.Sprintf("%x", value), fmt.Sprintf("%X", value)} {
		if strings.Contains(printed, form) {
			t.Fatalf("the secret is in:\n%s", printed)
		}
	}
	if !strings.Contains(printed, hidden) {
		t.Error("nothing says that there is a secret")
	}
	if s.Reveal() != value || s.Equal(NewSecret("other")) || (Secret{}).Reveal() != "" {
		t.Error("the secret is not what it was made of")
	}
}

func TestSecretsOfManifest(t *testing.T) {
	t.Parallel()
	text := "[worker.a]\nplugin = \"plugins/a.wasm\"\n[worker.a.secrets]\nkey = { env = \"API_KEY\" }\ntoken = { file = \"secrets/token\" }\n"
	m, err := parse("manifest.toml", []byte(text), setup(t))
	if err != nil {
		t.Fatal(err)
	}
	secrets := m.Workers[0].Secrets
	if got := secrets["key"]; got.Reveal() != "from the environment" || got.Env() != "API_KEY" {
		t.Errorf("key: got %q from %q", got.Reveal(), got.Env())
	}
	if got := secrets["token"]; got.Reveal() != "from a file" || got.File() == "" {
		t.Errorf("token: got %q from %q", got.Reveal(), got.File())
	}
	if shown := string(m.Show()); strings.Contains(shown, "from ") {
		t.Errorf("the shown manifest has a secret:\n%s", shown)
	}
}

func TestModesOfSecretFiles(t *testing.T) {
	t.Parallel()
	tests := []struct {
		mode           os.FileMode
		fault, warning string
	}{
		{0o600, "", ""},
		{0o400, "", ""},
		{0o440, "", ""},
		{0o644, "", `"secrets/token" may be read by every user of this machine (mode 0644); chmod 600 "secrets/token"`},
		{0o444, "", "(mode 0444)"},
		{0o660, `"secrets/token" may be written by others than its owner (mode 0660)`, ""},
		{0o666, `(mode 0666); chmod 600 "secrets/token"`, ""},
		{0o602, "(mode 0602)", ""},
	}
	const text = "[worker.a]\nplugin = \"plugins/a.wasm\"\n[worker.a.secrets]\ntoken = { file = \"secrets/token\" }\n"
	for _, test := range tests {
		t.Run(fmt.Sprintf("%04o", test.mode), func(t *testing.T) {
			t.Parallel()
			opts := setup(t)
			if err := os.Chmod(filepath.Join(opts.dir, "secrets", "token"), test.mode); err != nil {
				t.Fatal(err)
			}
			m, err := parse("manifest.toml", []byte(text), opts)
			switch {
			case test.fault != "":
				if err == nil || !strings.Contains(err.Error(), test.fault) {
					t.Errorf("got %v, want %q", err, test.fault)
				}
			case err != nil:
				t.Error(err)
			case test.warning == "" && len(m.Warnings) > 0, !strings.Contains(m.Warnings.Error(), test.warning):
				t.Errorf("got the warnings %v, want %q", m.Warnings, test.warning)
			}
		})
	}
}
