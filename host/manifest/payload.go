package manifest

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/state/payload"
)

// Bounds of [payload].
const (
	MaxPayloadStores = 16
	MaxPayloadKeys   = 64
)

// Payload is the section [payload]: where payloads and results are that are too
// large for the store.
type Payload struct {
	// Threshold is the largest payload or result that is in the store, in bytes.
	Threshold int
	// Max is the largest upload, in bytes.
	Max int64
	// Compress compresses what is written.
	Compress bool
	// OrphanAge is how old an object is that no job refers to when it is removed.
	OrphanAge time.Duration
	// Stores are those that can be read; the last takes what is written. The first
	// is the one that every host has, unless another one takes its place.
	Stores []PayloadStore
	// Keys open what they have sealed; the last seals what is written.
	Keys []PayloadKey
}

// Kinds of payload stores.
const (
	FilePayloads     = "file"
	S3Payloads       = "s3"
	RedisPayloads    = "redis"
	DatabasePayloads = "database" // the PostgreSQL in which the jobs are
)

// LocalPayloads is the name of the folder that every host has, unless its jobs are in
// PostgreSQL: then it has that, named as its kind is.
const LocalPayloads = "local"

// PayloadStore is a section [[payload.store]].
type PayloadStore struct {
	Name, Kind string
	// Path is the folder, absolute, of kind file. Shared says that all hosts of a cluster see it.
	Path   string
	Shared bool
	// Endpoint is the URL of the server, of kind s3; the objects are in Bucket.
	Endpoint, Region, Bucket string
	PathStyle                bool
	AccessKey, SecretKey     Secret
	// URL is that of the server, of kind redis, and Password belongs to it.
	URL      string
	Password Secret
	// TTL is how long Redis keeps the pieces of an object that is not committed.
	TTL time.Duration
	// Durable waits until Redis has an object on its disk.
	Durable bool
	// Prefix is what the names of all objects begin with, of kinds s3 and redis.
	Prefix string
}

// PayloadKey is a section [[payload.key]].
type PayloadKey struct {
	ID     string
	Secret Secret // what [payload.ParseSecret] reads
}

func defaultPayload() Payload {
	return Payload{Threshold: 64 << 10, Max: 1 << 30, OrphanAge: 48 * time.Hour}
}

func defaultPayloadStore() PayloadStore {
	return PayloadStore{PathStyle: true, TTL: time.Hour, Durable: true}
}

// payloads reads the sections [payload], [[payload.store]] and [[payload.key]].
func (r *reader) payloads(doc map[string]any, m *Manifest) {
	m.Payload = defaultPayload()
	table, ok := r.table(doc, nil, "payload")
	if ok {
		fill(r, []string{"payload"}, table, payloadFields(), &m.Payload, "store", "key")
		m.Payload.Stores = r.payloadStores(table, &m.Host.Store)
		m.Payload.Keys = r.payloadKeys(table)
	}
	if m.Host.Store.Driver == Postgres {
		r.checkShared(m.Payload.Stores)
	}
	first := m.firstPayloadStore()
	if !slices.ContainsFunc(m.Payload.Stores, func(s PayloadStore) bool { return s.Name == first.Name || s.Kind == DatabasePayloads }) {
		m.Payload.Stores = slices.Insert(m.Payload.Stores, 0, first)
	}
}

// firstPayloadStore is the store that a host has without being told.
func (m *Manifest) firstPayloadStore() PayloadStore {
	s := defaultPayloadStore()
	if m.Host.Store.Driver == Postgres {
		s.Name, s.Kind = DatabasePayloads, DatabasePayloads
		return s
	}
	s.Name, s.Kind, s.Path = LocalPayloads, FilePayloads, filepath.Join(m.Host.Data, "payloads")
	return s
}

// checkShared sees that other hosts of a cluster reach the stores of this one.
func (r *reader) checkShared(stores []PayloadStore) {
	for i := range stores {
		if stores[i].Kind == FilePayloads && !stores[i].Shared {
			path := []string{"payload", "store", element(i + 1)}
			r.faultKey(path, path, "other hosts of the cluster don't see a folder of this machine",
				"use kind database, a bucket or Redis; or set shared = true if it is on a file system that all of them mount at the same place")
		}
	}
}

// tables returns a list of tables in [payload].
func (r *reader) payloadTables(in map[string]any, name string, most int) []map[string]any {
	v, given := in[name]
	tables, ok := v.([]map[string]any)
	path := []string{"payload", name}
	switch {
	case !given:
		return nil
	case !ok:
		r.faultKey(path, path, "this is not a list", "each is a section of its own: [[payload."+name+"]]")
		return nil
	case len(tables) > most:
		r.faultKey(path, path, fmt.Sprintf("%d are more than %d", len(tables), most), "")
		return nil
	}
	return tables
}

func (r *reader) payloadStores(in map[string]any, jobs *Store) (stores []PayloadStore) {
	for i, table := range r.payloadTables(in, "store", MaxPayloadStores) {
		path := []string{"payload", "store", element(i + 1)}
		s := defaultPayloadStore()
		before := len(r.faults)
		fill(r, path, table, payloadStoreFields(), &s)
		for name, secret := range map[string]*Secret{"access_key": &s.AccessKey, "secret_key": &s.SecretKey, "password": &s.Password} {
			r.payloadSecret(at(path, name), table[name], secret)
		}
		if len(r.faults) > before {
			continue // faults that follow from it would be reported too
		}
		r.checkPayloadStore(path, table, &s)
		if slices.ContainsFunc(stores, func(o PayloadStore) bool { return o.Name == s.Name }) {
			r.faultValue(at(path, "name"), wrong("", "%s is the name of another store", text.Quote(s.Name, text.Short)))
		}
		if s.Kind == DatabasePayloads {
			r.checkDatabasePayloads(at(path, "kind"), stores, jobs)
		}
		stores = append(stores, s)
	}
	return stores
}

func (r *reader) payloadSecret(path []string, v any, to *Secret) {
	if v == nil {
		return
	}
	secret, err := r.secret(v)
	if err != nil {
		r.faultValue(path, err)
		return
	}
	*to = secret
}

// settingsOf are the settings of each kind of store, those that must be set first.
var settingsOf = map[string]struct{ needs, has []string }{
	FilePayloads:  {[]string{"path"}, []string{"shared"}},
	S3Payloads:    {[]string{"endpoint", "bucket"}, []string{"region", "prefix", "path_style", "access_key", "secret_key"}},
	RedisPayloads: {[]string{"url"}, []string{"password", "prefix", "ttl", "durable"}},
	// It is where the jobs are.
	DatabasePayloads: {},
}

// checkPayloadStore sees that a store has what its kind needs, and nothing else.
func (r *reader) checkPayloadStore(path []string, table map[string]any, s *PayloadStore) {
	settings := settingsOf[s.Kind]
	for _, name := range settings.needs {
		if _, given := table[name]; !given {
			r.faultKey(path, path, name+" is missing", "")
		}
	}
	for name := range table {
		if name != "name" && name != "kind" && !slices.Contains(settings.needs, name) && !slices.Contains(settings.has, name) {
			hint := "those are " + strings.Join(slices.Concat(settings.needs, settings.has), ", ")
			if s.Kind == DatabasePayloads {
				hint = "it has only a name"
			}
			r.faultKey(at(path, name), path, name+" is not a setting of kind "+s.Kind, hint)
		}
	}
	if (s.AccessKey == Secret{}) != (s.SecretKey == Secret{}) {
		r.faultKey(path, path, "access_key and secret_key go together", "set both, or neither")
	}
}

// checkDatabasePayloads sees that there is a database for payloads, and one store in it:
// of two, each would take the objects of the other for orphans.
func (r *reader) checkDatabasePayloads(kind []string, before []PayloadStore, jobs *Store) {
	switch {
	case jobs.Driver != Postgres:
		r.faultValue(kind, wrong(`set host.store to "postgres://USER@HOST/DATABASE", or use "file", "s3" or "redis"`,
			"the jobs of this host are not in PostgreSQL"))
	case slices.ContainsFunc(before, func(s PayloadStore) bool { return s.Kind == DatabasePayloads }):
		r.faultValue(kind, wrong("leave this one out", "another store is in the database"))
	}
}

func (r *reader) payloadKeys(in map[string]any) (keys []PayloadKey) {
	for i, table := range r.payloadTables(in, "key", MaxPayloadKeys) {
		path := []string{"payload", "key", element(i + 1)}
		var k PayloadKey
		before := len(r.faults)
		fill(r, path, table, payloadKeyFields(), &k)
		r.payloadSecret(at(path, "secret"), table["secret"], &k.Secret)
		if len(r.faults) > before {
			continue
		}
		if _, err := payload.ParseSecret(k.Secret.Reveal()); err != nil {
			r.faultValue(at(path, "secret"), wrong("make one by: openssl rand -hex 32", "%v", err))
		}
		if slices.ContainsFunc(keys, func(o PayloadKey) bool { return o.ID == k.ID }) {
			r.faultValue(at(path, "id"), wrong("", "%s is the id of another key", text.Quote(k.ID, text.Short)))
		}
		keys = append(keys, k)
	}
	return keys
}

// serverURL checks the URL of a server, in which no secret may stand.
func serverURL(schemes ...string) func(string) error {
	return func(s string) error {
		u, err := url.Parse(s)
		if err != nil || !slices.Contains(schemes, u.Scheme) || u.Host == "" && u.Scheme != "unix" {
			return wrong("write it like "+schemes[0]+"://HOST:PORT", "this is not the URL of a server")
		}
		if _, secret := u.User.Password(); secret {
			return wrong("leave it out and set password", "the password itself must not stand in the manifest")
		}
		return nil
	}
}

func payloadName(s string) error {
	if err := payload.CheckName(s); err != nil {
		return wrong("", "%v", err)
	}
	return nil
}

func (m *Manifest) showPayload(b *strings.Builder) {
	b.WriteString("\n[payload]\n")
	showFields(b, m.Dir, payloadFields(), &m.Payload)
	for i := range m.Payload.Stores {
		s := &m.Payload.Stores[i]
		b.WriteString("\n[[payload.store]]\n")
		settings := settingsOf[s.Kind]
		shown := slices.DeleteFunc(payloadStoreFields(), func(f field[PayloadStore]) bool {
			return f.name != "name" && f.name != "kind" && !slices.Contains(settings.needs, f.name) && !slices.Contains(settings.has, f.name)
		})
		showFields(b, m.Dir, shown, s)
	}
	for i := range m.Payload.Keys {
		b.WriteString("\n[[payload.key]]\n")
		showFields(b, m.Dir, payloadKeyFields(), &m.Payload.Keys[i])
	}
}
