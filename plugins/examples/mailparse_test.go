package examples_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

func TestMailparse(t *testing.T) {
	t.Parallel()
	if err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import grpc, google.protobuf, cryptography").Run(); err != nil {
		t.Skip("/usr/bin/python3 lacks modules (Debian: python3-grpcio, python3-protobuf, python3-cryptography)")
	}
	w := sdktest.OpenProcess(t, sdktest.Executable{Path: "mailparse/mailparse.py"})
	for name, want := range map[string]string{
		"letter": `{"from": [{"name": "Zoë Müller", "address": "zoe@example.org"}], "to": [{"name": "Ada", "address": "ada@example.com"}, ` +
			`{"name": "Smith, Bob", "address": "bob@example.com"}, {"name": "", "address": "team@example.com"}], ` +
			`"subject": "Grüße aus Ulm 🎉", "date": "2026-11-22T09:30:00+01:00", "text": "Schöne Grüße,\nZoë", ` +
			`"attachments": [{"name": "präsentation.csv", "type": "text/csv", "bytes": 16, "sha256": "0202b2c0fe3bc45c94aef9a4db21e270b6c8aec4813fa313525006a3e356fdfa"}]}`,
		"page": `{"from": [{"name": "", "address": "news@example.org"}], "to": [{"name": "", "address": "ada@example.com"}], ` +
			`"subject": "News", "date": null, "text": "Two good\nreasons:\none\ntwo", "attachments": []}`,
	} {
		mail, err := os.ReadFile("mailparse/testdata/" + name + ".eml")
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Call(t, "", string(mail)); got != want {
			t.Errorf("%s: %s\nnot %s", name, got, want)
		}
	}
	for _, input := range []string{"", "\n\nno header"} {
		if f := w.Fail(t, "", input); f.Retryable || f.Code != "no_mail" {
			t.Errorf("%q: %+v", input, f)
		}
	}
}
