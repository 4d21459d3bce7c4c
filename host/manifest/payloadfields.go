package manifest

import (
	"time"

	"github.com/jobhost/jobhost"
)

func payloadFields() []field[Payload] {
	type f = field[Payload]
	return []f{
		{
			name: "threshold", kind: kindSize, meaning: "Largest payload or result that is kept in the store; larger ones are objects in a payload store. 1KiB to 16MiB.",
			bind: func(_ string, p *Payload) setting { return size(&p.Threshold, 1<<10, 16<<20) },
		},
		{
			name: "max", kind: kindSize, meaning: "Largest payload that can be uploaded, 1KiB to 1TiB. What comes within a submit is bounded by `host.max_payload`.",
			bind: func(_ string, p *Payload) setting { return size(&p.Max, 1<<10, 1<<40) },
		},
		{
			name: "compress", kind: kindFlag, meaning: "Objects are compressed by zstd. Those that are not stay readable, and the other way round.",
			bind: func(_ string, p *Payload) setting { return boolean(&p.Compress) },
		},
		{
			name: "orphan_age", kind: kindDuration, meaning: "How old an object is that no job refers to when it is removed: what a crash has left, and uploads that no job has taken, which wait no longer than this or an hour. 1s to 30d.",
			bind: func(_ string, p *Payload) setting { return duration(&p.OrphanAge, time.Second, 30*24*time.Hour) },
		},
	}
}

func payloadStoreFields() []field[PayloadStore] { //nolint:revive // it is a table, however long
	type f = field[PayloadStore]
	return []f{
		{
			name: "name", kind: kindText, auto: "none, must be set", required: true, meaning: "What references know the store by, for as long as there are any: 1 to 32 of `a-z 0-9 _ -`, beginning with a letter or digit. `local` is the folder that every host has, unless it stands here; one whose jobs are in PostgreSQL has `database` instead.",
			bind: func(_ string, s *PayloadStore) setting { return textual(&s.Name, "bucket", payloadName) },
		},
		{
			name: "kind", kind: "`file`, `s3`, `redis` or `database`", auto: "none, must be set", required: true, meaning: "What it is: a folder, a bucket of a server that speaks S3, Redis, or the PostgreSQL in which the jobs are. `database` has no settings but `name`.",
			bind: func(_ string, s *PayloadStore) setting {
				return oneOf(&s.Kind, FilePayloads, S3Payloads, RedisPayloads, DatabasePayloads)
			},
		},
		{
			name: "path", kind: kindPath, auto: "none, must be set", meaning: "Folder of the objects, for `file`.",
			bind: func(dir string, s *PayloadStore) setting {
				return pathTo(&s.Path, dir, "./data/payloads", resolve)
			},
		},
		{
			name: "shared", kind: kindFlag, meaning: "All hosts of a [cluster](cluster.md) see the folder, as with NFS, for `file`.",
			bind: func(_ string, s *PayloadStore) setting { return boolean(&s.Shared) },
		},
		{
			name: "endpoint", kind: "URL", auto: "none, must be set", meaning: "Server, for `s3`, such as `https://s3.eu-central-1.amazonaws.com`.",
			bind: func(_ string, s *PayloadStore) setting {
				return textual(&s.Endpoint, "https://s3.example.com", serverURL("https", "http"))
			},
		},
		{
			name: "region", kind: kindText, auto: "the server is asked", meaning: "Region of the bucket, for `s3`.",
			bind: func(_ string, s *PayloadStore) setting { return textual(&s.Region, "eu-central-1", line(64)) },
		},
		{
			name: "bucket", kind: kindText, auto: "none, must be set", meaning: "Bucket of the objects, for `s3`; it must be there.",
			bind: func(_ string, s *PayloadStore) setting { return textual(&s.Bucket, "jobs", line(255)) },
		},
		{
			name: "path_style", kind: kindFlag, meaning: "The bucket stands in the path rather than in the name of the host, for `s3`.",
			bind: func(_ string, s *PayloadStore) setting { return boolean(&s.PathStyle) },
		},
		{
			name: "access_key", kind: kindSecret, auto: "none", meaning: "Access key, for `s3`.",
			bind: func(dir string, s *PayloadStore) setting { return secretOf(dir, &s.AccessKey) },
		},
		{
			name: "secret_key", kind: kindSecret, auto: "none", meaning: "Secret key, for `s3`.",
			bind: func(dir string, s *PayloadStore) setting { return secretOf(dir, &s.SecretKey) },
		},
		{
			name: "url", kind: "URL", auto: "none, must be set", meaning: "Server, for `redis`: `redis://USER@HOST:PORT/NUMBER`, `rediss://` with TLS, or `unix://PATH`.",
			bind: func(_ string, s *PayloadStore) setting {
				return textual(&s.URL, "redis://127.0.0.1:6379/0", serverURL("redis", "rediss", "unix"))
			},
		},
		{
			name: "password", kind: kindSecret, auto: "none", meaning: "Password, for `redis`.",
			bind: func(dir string, s *PayloadStore) setting { return secretOf(dir, &s.Password) },
		},
		{
			name: "ttl", kind: kindDuration, meaning: "How long the pieces of an upload stay that was cut off, for `redis`, since the last was written. Objects stay as long as their job. 1m to 10y.",
			bind: func(_ string, s *PayloadStore) setting { return duration(&s.TTL, time.Minute, jobhost.MaxRetention) },
		},
		{
			name: "durable", kind: kindFlag, meaning: "An object counts as written when it is in the server's append-only file, for `redis`. Otherwise a crash of the server can lose payloads of acknowledged jobs.",
			bind: func(_ string, s *PayloadStore) setting { return boolean(&s.Durable) },
		},
		{
			name: "prefix", kind: kindText, auto: "empty", meaning: "What the names of all objects begin with, for `s3` and `redis`; up to 256 bytes.",
			bind: func(_ string, s *PayloadStore) setting { return textual(&s.Prefix, "jobhost/", line(256)) },
		},
	}
}

func payloadKeyFields() []field[PayloadKey] {
	type f = field[PayloadKey]
	return []f{
		{
			name: "id", kind: kindText, auto: "none, must be set", required: true, meaning: "What references know the key by: 1 to 32 of `a-z 0-9 _ -`, beginning with a letter or digit.",
			bind: func(_ string, k *PayloadKey) setting { return textual(&k.ID, "2026-11", payloadName) },
		},
		{
			name: "secret", kind: kindSecret, auto: "none, must be set", required: true, meaning: "32 random bytes, as 64 hex digits or as base64.",
			bind: func(dir string, k *PayloadKey) setting { return secretOf(dir, &k.Secret) },
		},
	}
}

const kindSecret = "`{ env = \"NAME\" }` or `{ file = \"PATH\" }`"

// secretOf shows a secret. It is read by [reader.payloadSecret], which knows the
// environment.
func secretOf(dir string, s *Secret) setting {
	return setting{
		set: func(any) error { return nil },
		show: func() string {
			if *s == (Secret{}) {
				return ""
			}
			return showSecret(dir, *s)
		},
	}
}
