package object

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/state/payload"
)

// The notes about the origins of the objects that a store refers to.
//
//	secret    signs the uploads' references, so that they stay valid over a restart and for
//	          all hosts of a store; the origin of new objects is derived from it
//	foreign   origins the store had before it was restored: their objects are
//	          read, and left to the original
//	adopted   origins that were foreign until it took over
const (
	secretNote  = "uploads.secret"
	foreignNote = "uploads.foreign"
	adoptedNote = "uploads.adopted"
)

// origins say which objects belong to whom.
type origins struct {
	secret   []byte
	restored bool             // the store was restored from a copy, and this was not acted upon yet
	adopted  []payload.Origin // whose objects are removed as well
	foreign  []payload.Origin
}

// own returns the origin of new objects.
func (o *origins) own() payload.Origin {
	sum := sha256.Sum256(append([]byte("origin "), o.secret...))
	return payload.Origin(sum[:len(payload.Origin{})])
}

// removable returns the origins whose objects may be removed.
func (o *origins) removable() []payload.Origin {
	return append([]payload.Origin{o.own()}, o.adopted...)
}

func readOrigins(ctx context.Context, store record.Store) (*origins, error) {
	notes, err := store.Notes(ctx)
	if err != nil {
		return nil, err
	}
	o := &origins{restored: notes[record.NoteRestored] != "", adopted: parseOrigins(notes[adoptedNote]), foreign: parseOrigins(notes[foreignNote])}
	if secret, err := base64.StdEncoding.DecodeString(notes[secretNote]); err == nil && len(secret) == sha256.Size {
		o.secret = secret
	}
	return o, nil
}

// write stores the origins in one commit.
func (o *origins) write(ctx context.Context, store record.Store) error {
	ops := []record.Op{
		&record.Note{Name: adoptedNote, Text: originsText(o.adopted)},
		&record.Note{Name: foreignNote, Text: originsText(o.foreign)},
		&record.Note{Name: record.NoteRestored},
	}
	if o.secret != nil {
		ops = append(ops, &record.Note{Name: secretNote, Text: base64.StdEncoding.EncodeToString(o.secret)})
	}
	return commit(ctx, store, ops...)
}

// openOrigins reads the origins. A new store gets an origin, and so does a restored
// one: its earlier objects belong to the original from then on.
func openOrigins(ctx context.Context, store record.Store) (*origins, error) {
	o, err := readOrigins(ctx, store)
	if err != nil || o.secret != nil && !o.restored {
		return o, err
	}
	if o.secret != nil {
		o.foreign = append(append(o.foreign, o.own()), o.adopted...)
		o.adopted = nil
	}
	o.secret, o.restored = make([]byte, sha256.Size), false
	_, _ = rand.Read(o.secret) // never fails: see its documentation
	return o, o.write(ctx, store)
}

// LeavesToOriginal reports whether a store was restored beside an original that may
// still be running: it has not taken over.
func LeavesToOriginal(ctx context.Context, store record.Store) (bool, error) {
	o, err := readOrigins(ctx, store)
	if err != nil {
		return false, err
	}
	return o.restored || len(o.foreign) > 0, nil
}

// TakeOver makes a restored store, which no host may have open, the continuation of
// the original: from its next start it also removes the earlier objects. It returns
// the number of origins taken over; 0 = the store had left none to an original.
func TakeOver(ctx context.Context, store record.Store) (int, error) {
	o, err := readOrigins(ctx, store)
	if err != nil {
		return 0, err
	}
	n := len(o.foreign)
	if o.restored && o.secret != nil {
		n++ // its own, which it keeps
	}
	if n == 0 && !o.restored {
		return 0, nil
	}
	o.adopted, o.foreign = append(o.adopted, o.foreign...), nil
	return n, o.write(ctx, store)
}

// parseOrigins parses the output of originsText.
func parseOrigins(text string) (list []payload.Origin) {
	for _, one := range strings.Fields(text) {
		if o, ok := payload.ParseOrigin(one); ok {
			list = append(list, o)
		}
	}
	return list
}

func originsText(list []payload.Origin) string {
	texts := make([]string, len(list))
	for i, o := range list {
		texts[i] = o.String()
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), " ")
}
