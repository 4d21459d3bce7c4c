package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/filepayload"
)

// payloadMove copies payloads that are outside of the SQLite store. A reference names its payload store, so payloads from a folder
// are copied into the store that has its name in the manifest. Payloads in stores that all hosts reach stay there.
type payloadMove struct {
	move    *move
	from    map[string]string        // folders that are copied, by the names of their stores
	to      map[string]payload.Store // by name, those of from
	missing []string                 // the first objects that are not there
	lost    int                      // how many are not there
}

// payloadFolders reads flags of the form NAME=DIR.
func payloadFolders(e *env, flags []string) (map[string]string, error) {
	folders := map[string]string{}
	for _, flag := range flags {
		name, dir, ok := strings.Cut(flag, "=")
		if !ok || payload.CheckName(name) != nil || dir == "" {
			return nil, jobhost.Invalid("payloads", "", "%.80q is no payload store and its folder: say NAME=DIR", flag)
		}
		folders[name] = e.path(dir)
	}
	return folders, nil
}

// planPayloads decides which payloads are copied, before anything is changed.
func planPayloads(v *move, m *manifest.Manifest, folders map[string]string, logger *slog.Logger) (*payloadMove, error) {
	p := &payloadMove{move: v, from: map[string]string{}, to: map[string]payload.Store{}}
	if own := filepath.Join(v.dir, "payloads"); folders[manifest.LocalPayloads] == "" {
		if _, err := os.Stat(own); err == nil {
			folders[manifest.LocalPayloads] = own
		}
	}
	var names []string
	err := sqlitequeue.EachRef(v.source, func(text string) error {
		ref, err := payload.ParseRef(text)
		if err != nil {
			return err
		}
		if !slices.Contains(names, ref.Store) {
			names = append(names, ref.Store)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		i := slices.IndexFunc(m.Payload.Stores, func(s manifest.PayloadStore) bool { return s.Name == name })
		if i < 0 {
			return nil, &jobhost.Error{
				Code: jobhost.CodeInvalid, Field: "payload.store", Message: fmt.Sprintf("there are payloads in the store %s, which the manifest doesn't have", name),
				Hint: fmt.Sprintf("add a [[payload.store]] with name = %q; with kind = \"database\" what is in its folder is copied into the database", name),
			}
		}
		if err := p.plan(v, &m.Payload.Stores[i], folders[name], logger); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// plan decides about one payload store; folder is empty if it isn't known.
func (p *payloadMove) plan(v *move, s *manifest.PayloadStore, folder string, logger *slog.Logger) (err error) {
	switch {
	case folder == "" && s.Kind == manifest.DatabasePayloads:
		return &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: "payloads", Message: fmt.Sprintf("the folder of the payload store %s is not known", s.Name),
			Hint: fmt.Sprintf("name it: --payloads %s=DIR", s.Name),
		}
	case folder == "", s.Kind == manifest.FilePayloads && filepath.Clean(s.Path) == filepath.Clean(folder):
		return nil
	}
	p.from[s.Name] = folder
	if p.to[s.Name], err = openPayloadStore(s, v.db, logger); err != nil {
		return fmt.Errorf("payload store %s: %w", s.Name, err)
	}
	return nil
}

// each calls do for each object to copy.
func (p *payloadMove) each(ctx context.Context, source *sqlitedb.Source, do func(context.Context, payload.Ref) error) error {
	err := sqlitequeue.EachRef(source, func(text string) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		ref, err := payload.ParseRef(text)
		if err != nil {
			return err
		}
		if p.from[ref.Store] == "" {
			p.move.moved.PayloadsKept++
			return nil
		}
		if err := do(ctx, ref); errors.Is(err, payload.ErrNotFound) {
			p.lose(ref)
			return nil
		} else if err != nil {
			return fmt.Errorf("copy payload %s: %w", ref.Name(), err)
		}
		p.move.moved.Payloads++
		p.move.moved.PayloadBytes += ref.Size
		return nil
	})
	if err != nil || p.lost == 0 {
		return err
	}
	return &jobhost.Error{
		Code: jobhost.CodeNotFound, Message: fmt.Sprintf("%d payloads are not in their folder: %s", p.lost, strings.Join(p.missing, ", ")),
		Hint: "put them there, or let a host on the store remove their jobs; if it is another folder, name it: --payloads NAME=DIR",
	}
}

// lose notes an object that is not there.
func (p *payloadMove) lose(ref payload.Ref) {
	const shown = 5
	if p.lost++; len(p.missing) < shown {
		p.missing = append(p.missing, ref.Store+":"+ref.Key)
	}
}

// look checks that an object is there.
func (p *payloadMove) look(_ context.Context, ref payload.Ref) error {
	r, err := filepayload.OpenObject(p.from[ref.Store], ref.Key)
	if err != nil {
		return err
	}
	return r.Close()
}

// copy copies an object as it is, unless an earlier run has copied it. Objects are never there in part.
func (p *payloadMove) copy(ctx context.Context, ref payload.Ref) error {
	to := p.to[ref.Store]
	if there, err := has(ctx, to, ref.Key); there || err != nil {
		return err
	}
	from, err := filepayload.OpenObject(p.from[ref.Store], ref.Key)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // nothing was written
	o, err := to.Create(ctx, ref.Key)
	if err != nil {
		return err
	}
	defer o.Abort()
	if _, err := io.Copy(o, from); err != nil {
		return err
	}
	return o.Commit()
}

// has reports whether a store has an object. It reads a byte, since some stores only notice then.
func has(ctx context.Context, s payload.Store, key string) (bool, error) {
	r, err := s.Open(ctx, key)
	if err == nil {
		_, err = r.Read(make([]byte, 1))
		_ = r.Close() // nothing was written
	}
	switch {
	case errors.Is(err, payload.ErrNotFound):
		return false, nil
	case err == nil, errors.Is(err, io.EOF):
		return true, nil
	}
	return false, err
}

// close closes the stores.
func (p *payloadMove) close() (err error) {
	for _, s := range p.to {
		err = errors.Join(err, s.Close())
	}
	return err
}
