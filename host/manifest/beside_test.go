package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// written puts a manifest into a folder of its own.
func written(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "manifest.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const hostOnly = "[host]\nlisten = \"127.0.0.1:7171\"\ntoken_file = \"the-token\"\n"

// What is wrong elsewhere doesn't keep a client from its host.
func TestLoadHostReadsNothingElse(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]string{
		"no worker":           "",
		"missing plugin":      "[worker.a]\nplugin = \"a.wasm\"\n",
		"native without pin":  "[worker.a]\nplugin = \"a.pyz\"\nabi = \"process\"\n",
		"unset secret":        "[worker.a]\nplugin = \"a.wasm\"\n[worker.a.secrets]\nk = { env = \"JOBHOST_TEST_UNSET\" }\n",
		"unset webhook key":   "[webhook]\nallow = [\"https://x.example\"]\nsecrets = [{ env = \"JOBHOST_TEST_UNSET\" }]\n",
		"misspelt setting":    "[worker.a]\nplugin = \"a.wasm\"\ntimeot = \"3s\"\n",
		"misspelt section":    "[workr.a]\nplugin = \"a.wasm\"\n",
		"no TOML in a worker": "[worker.a]\nplugin = \"a.wasm\n",
		"no TOML at the end":  "[worker.a]\nplugin = \"a.wasm\"\n[worker.b]\nplugin = = 1\n",
		"comment":             "# more\n",
		"unclosed text":       "[worker.a]\ndescription = \"\"\"\nabc\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := written(t, hostOnly+rest)
			h, err := LoadHost(path)
			if err != nil || h.Listen != "127.0.0.1:7171" || h.TokenFile != filepath.Join(filepath.Dir(path), "the-token") {
				t.Errorf("%+v, %v", h, err)
			}
		})
	}
}

func TestLoadHostOfAnEmptyManifest(t *testing.T) {
	t.Parallel()
	if h, err := LoadHost(written(t, "")); err != nil || h.Listen != "127.0.0.1:7070" {
		t.Errorf("%+v, %v; want the defaults", h, err)
	}
}

// Where the address is can't be told, so nothing is guessed.
func TestLoadHostRefusesToGuess(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[host]\nlisen = \"127.0.0.1:7171\"\n":          "manifest.toml:2:1: host: lisen is not a setting; did you mean listen?",
		"[host]\nlisten = \"127.0.0.1\"\n":              "manifest.toml:2:10: host.listen: ",
		"[hots]\nlisten = \"127.0.0.1:7171\"\n":         "hots is not a section; did you mean host?",
		"listen = \"127.0.0.1:7171\"\n":                 "it belongs below [host]",
		"[host]\nlisten = \"127.0.0.1:7171\n":           "manifest.toml:2:",
		"[worker.a]\nx = = 1\n" + hostOnly:              "manifest.toml:2:",
		hostOnly + "[worker.a]\nx = = 1\n[host]\nx = 1": "manifest.toml:5:",
		"[worker.a]\nx = \"\"\"\n" + hostOnly:           "manifest.toml:",
	} {
		h, err := LoadHost(written(t, text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, h, err, want)
		}
	}
}

func TestLoadStoresNeedsNoSecrets(t *testing.T) {
	t.Parallel()
	path := written(t, hostOnly+`store = "sqlite:jobs"
[worker.a]
plugin = "nowhere.wasm"
timeot = "3s"
[payload]
[[payload.store]]
name = "local"
kind = "file"
path = "big"
[[payload.store]]
name = "far"
kind = "s3"
endpoint = "https://s3.example.com"
bucket = "b"
access_key = { env = "JOBHOST_TEST_UNSET" }
secret_key = { file = "nowhere" }
[[payload.key]]
id = "1"
secret = { env = "JOBHOST_TEST_UNSET" }
`)
	m, err := LoadStores(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	if m.Host.Store.Dir != filepath.Join(dir, "jobs") || len(m.Payload.Stores) != 2 || m.Payload.Stores[0].Path != filepath.Join(dir, "big") {
		t.Errorf("the host is %+v, the payloads are %+v", m.Host, m.Payload)
	}
}

// A payload store that is overlooked would be missing from a backup.
func TestLoadStoresRefusesToGuess(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		hostOnly + "[worker.a]\nx = = 1\n":                                            "manifest.toml:5:",
		hostOnly + "[payloads]\nthreshold = \"1MiB\"\n":                               "payloads is not a section; did you mean payload?",
		hostOnly + "[[payload.store]]\nname = \"local\"\nkind = \"file\"\n":           "path is missing",
		hostOnly + "[[payload.store]]\nname = \"a\"\nkind = \"file\"\npaht = \"b\"\n": "did you mean path?",
	} {
		m, err := LoadStores(written(t, text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, m, err, want)
		}
	}
}
