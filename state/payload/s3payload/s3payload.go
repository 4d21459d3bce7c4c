// Package s3payload keeps payloads as objects in a bucket of a server that
// speaks the S3 API. It implements [payload.Store].
//
// What fits into one part is one request; the rest is a multipart upload of
// parts of 8 MiB, one at a time, which is all that an upload holds in memory.
// A bucket should have a rule that ends multipart uploads which were never
// completed after a few days: those are what a crash can leave behind that no
// list of objects shows.
package s3payload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/jobhost/jobhost/state/payload"
)

// Config says where the objects are.
type Config struct {
	// Endpoint is the server's URL, such as "https://s3.eu-central-1.amazonaws.com".
	Endpoint string
	// Region of the bucket; empty = the server is asked.
	Region string
	// Bucket must be there.
	Bucket string
	// Prefix is what the names of all objects begin with; may be empty.
	Prefix string
	// AccessKey and SecretKey are the credentials; both empty = none.
	AccessKey, SecretKey string
	// PathStyle puts the bucket into the path rather than the host's name, as
	// most servers but those of large clouds want it.
	PathStyle bool
	// Transport makes the requests; nil = one of its own, which takes no proxy
	// from the environment.
	Transport http.RoundTripper
}

// tries is how often a request is made that failed for a reason that may pass.
const tries = 3

// Store is a [payload.Store] in a bucket.
type Store struct {
	core   minio.Core
	bucket string
	prefix string
	idle   interface{ CloseIdleConnections() } // nil = the transport is not its own
}

var _ payload.Store = (*Store)(nil)

// Open returns a store. It makes no request: a server that is away is no
// reason not to start.
func Open(cfg Config) (*Store, error) {
	u, err := url.Parse(cfg.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("open payload bucket: the endpoint %q is not the URL of a server", cfg.Endpoint)
	}
	s := &Store{bucket: cfg.Bucket, prefix: cfg.Prefix}
	transport := cfg.Transport
	if transport == nil {
		own, err := minio.DefaultTransport(u.Scheme == "https")
		if err != nil {
			return nil, fmt.Errorf("open payload bucket: %w", err)
		}
		own.Proxy = nil
		transport, s.idle = own, own
	}
	lookup := minio.BucketLookupDNS
	if cfg.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds:        credentials.NewStaticV4(cfg.AccessKey, cfg.SecretKey, ""),
		Secure:       u.Scheme == "https",
		Transport:    transport,
		Region:       cfg.Region,
		BucketLookup: lookup,
		MaxRetries:   tries,
	})
	if err != nil {
		return nil, fmt.Errorf("open payload bucket: %w", err)
	}
	s.core = minio.Core{Client: client}
	return s, nil
}

// Open implements [payload.Store].
func (s *Store) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	body, _, _, err := s.core.GetObject(ctx, s.bucket, s.prefix+key, minio.GetObjectOptions{})
	if err != nil {
		return nil, explain(err)
	}
	return body, nil
}

// explain tells a missing object from other errors.
func explain(err error) error {
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return payload.ErrNotFound
	}
	return err
}

// Delete implements [payload.Store]. One request deletes up to a thousand.
func (s *Store) Delete(ctx context.Context, keys []string) error {
	objects := func(yield func(minio.ObjectInfo) bool) {
		for _, key := range keys {
			if !yield(minio.ObjectInfo{Key: s.prefix + key}) {
				return
			}
		}
	}
	results, err := s.core.RemoveObjectsWithIter(ctx, s.bucket, objects, minio.RemoveObjectsOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for r := range results {
		if r.Err != nil && !errors.Is(explain(r.Err), payload.ErrNotFound) && len(errs) < 3 { // the others will be alike
			errs = append(errs, r.Err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}

// List implements [payload.Store].
func (s *Store) List(ctx context.Context, after string, limit int) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opts := minio.ListObjectsOptions{Prefix: s.prefix, Recursive: true, MaxKeys: min(limit, 1000)}
	if after != "" {
		opts.StartAfter = s.prefix + after
	}
	var keys []string
	if limit <= 0 {
		return nil, nil
	}
	for object := range s.core.ListObjectsIter(ctx, s.bucket, opts) {
		if object.Err != nil {
			return nil, object.Err
		}
		key, ok := strings.CutPrefix(object.Key, s.prefix)
		if _, ours := payload.KeyTime(key); !ok || !ours || key <= after {
			continue
		}
		if keys = append(keys, key); len(keys) == limit {
			break
		}
	}
	slices.Sort(keys) // they are, but servers differ
	return keys, nil
}

// Close implements [payload.Store].
func (s *Store) Close() error {
	if s.idle != nil {
		s.idle.CloseIdleConnections()
	}
	return nil
}
