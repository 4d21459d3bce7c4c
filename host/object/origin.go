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

// The notes that say whose the objects are that a store refers to.
//
//	secret    of the uploads' references, so that they hold over a restart and for
//	          all hosts of a store; the origin of what is made follows from it
//	foreign   origins that the store had before it was restored: their objects are
//	          read, and left to the original
//	adopted   the same, after it took over
const (
	secretNote  = "uploads.secret"
	foreignNote = "uploads.foreign"
	adoptedNote = "uploads.adopted"
)

// origins are whose objects there are.
type origins struct {
	secret   []byte
	restored bool             // the store is a copy that was put in its place, and nothing followed from it yet
	adopted  []payload.Origin // whose objects are removed as well
	foreign  []payload.Origin
}

// own returns the origin of what is made.
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

// write keeps the origins, all in one commit.
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

// openOrigins reads whose the objects are. A new store gets an origin. So does a
// restored one: what it had is the original's from then on.
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
	_, _ = rand.Read(o.secret) // it never fails: see its documentation
	return o, o.write(ctx, store)
}

// LeavesToOriginal reports whether a store was restored beside an original that may be
// alive: it has not taken over.
func LeavesToOriginal(ctx context.Context, store record.Store) (bool, error) {
	o, err := readOrigins(ctx, store)
	if err != nil {
		return false, err
	}
	return o.restored || len(o.foreign) > 0, nil
}

// TakeOver makes a restored store, which no host has open, that in which the
// original goes on: from its next start on it removes the objects of before, too.
// It returns of how many origins, which is 0 if it has left none to an original.
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

// parseOrigins reads what originsText wrote.
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
