package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"sync"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/process"
)

// file is a file that was found.
type file struct {
	path   string
	bytes  int64
	digest string // set by search.run; empty = it was not read, or can't be
}

// list returns the files of a folder. Unreadable folders are skipped, as is everything that is not a regular file.
func list(ctx context.Context, folder fs.FS, least int64) (files []*file, err error) {
	err = fs.WalkDir(folder, ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil || !e.Type().IsRegular():
			return nil //nolint:nilerr // the others are still useful
		}
		if info, err := e.Info(); err == nil && info.Size() >= least {
			files = append(files, &file{path: path, bytes: info.Size()})
		}
		return nil
	})
	return files, err
}

// search compares the contents of files.
type search struct {
	fs   fs.FS
	job  *process.Job
	seen jobhost.Counter

	mu          sync.Mutex // protects the rest
	done, total int64      // bytes
}

// run finds those with the same content. Only files of equal size are read.
func (s *search) run(ctx context.Context, files []*file) ([]group, error) {
	bySize := map[int64][]*file{}
	for _, f := range files {
		bySize[f.bytes] = append(bySize[f.bytes], f)
	}
	var suspects []*file
	for size, same := range bySize {
		if len(same) > 1 {
			suspects = append(suspects, same...)
			s.total += size * int64(len(same))
		}
	}
	// The largest first, so that no processor is left with one of them at the end.
	slices.SortFunc(suspects, func(a, b *file) int { return cmp.Compare(b.bytes, a.bytes) })
	next := make(chan *file)
	var hashers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		hashers.Go(func() {
			for f := range next {
				if err := s.hash(ctx, f); err != nil && ctx.Err() == nil {
					s.job.Log(jobhost.LevelWarn, fmt.Sprintf("%s: %v", f.path, err))
				}
			}
		})
	}
	for _, f := range suspects {
		if ctx.Err() != nil {
			break
		}
		next <- f
	}
	close(next)
	hashers.Wait()
	return groups(suspects), context.Cause(ctx)
}

// hash reads a file.
func (s *search) hash(ctx context.Context, f *file) error {
	r, err := s.fs.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, &counted{ctx, r, s}); err != nil {
		return err
	}
	f.digest = hex.EncodeToString(sum.Sum(nil))
	_ = s.seen.Add(float64(f.bytes)) // if there are metrics
	return nil
}

// counted is a file whose reading is reported as progress, and ends with the job.
type counted struct {
	ctx context.Context
	r   io.Reader
	s   *search
}

// Read implements [io.Reader].
func (c *counted) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	n, err := c.r.Read(p)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.done += int64(n)
	c.s.job.Progress(c.s.done, c.s.total)
	return n, err
}

// groups returns files with the same content, the most wasteful ones first.
func groups(files []*file) []group {
	byDigest := map[string]*group{}
	for _, f := range files {
		if f.digest == "" {
			continue
		}
		g := byDigest[f.digest]
		if g == nil {
			g = &group{Bytes: f.bytes, SHA256: f.digest}
			byDigest[f.digest] = g
		}
		g.Paths = append(g.Paths, f.path)
	}
	list := []group{}
	for _, g := range byDigest {
		if len(g.Paths) > 1 {
			slices.Sort(g.Paths)
			list = append(list, *g)
		}
	}
	slices.SortFunc(list, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.Bytes*int64(len(b.Paths)-1), a.Bytes*int64(len(a.Paths)-1)), cmp.Compare(a.Paths[0], b.Paths[0]))
	})
	return list
}
