package manifest

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// hidden is what a secret looks like to everybody but [Secret.Reveal].
const hidden = "[secret]"

// Secret is a value that never prints: not with fmt, log/slog or as JSON or
// text. Only [Secret.Reveal] gives it away.
type Secret struct {
	env, file string
	// A pointer, so that fmt shows an address even where it can't call the
	// methods below: inside unexported fields of others.
	value *string
}

// NewSecret returns a secret that comes from nowhere, for programs that embed a host.
func NewSecret(value string) Secret { return Secret{value: &value} }

// Reveal returns the secret itself; "" for the zero Secret.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Env is the environment variable that the secret comes from, or "".
func (s Secret) Env() string { return s.env }

// File is the path of the file that the secret comes from, absolute, or "".
func (s Secret) File() string { return s.file }

// Equal reports whether both have the same value from the same place.
func (s Secret) Equal(other Secret) bool {
	return s.env == other.env && s.file == other.file && s.Reveal() == other.Reveal()
}

// String returns "[secret]".
func (Secret) String() string { return hidden }

// Format implements [fmt.Formatter] for every verb and flag.
func (Secret) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, hidden) }

// MarshalJSON implements [json.Marshaler].
func (Secret) MarshalJSON() ([]byte, error) { return json.Marshal(hidden) }

// MarshalText implements [encoding.TextMarshaler].
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue implements [slog.LogValuer].
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }
