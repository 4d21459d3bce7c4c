package main

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost/host/crash"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// What is not code may be a log of what is built and swapped, and so follows it. Code that a
// build writes was written before its end.
const logDelay = 500 * time.Millisecond

// echoSeen is how soon after a build a change is seen that came with it: files can have any time.
const echoSeen = 3 * time.Second

// mostEchoes is how many builds in a row may have nothing but such changes as their reason:
// a person may have saved something meanwhile.
const mostEchoes = 2

// sources tells changes of sources from those that builds make themselves.
type sources struct {
	built   time.Time // the end of the last build
	swapped time.Time // the end of the last reload
	echoes  int       // builds in a row whose reason came with the one before
	made    []string  // files that builds write
	dropped []string  // files that have turned out to be no sources
}

// pick returns the changed files that are worth a build; made are those that it has
// found to be written by builds just now.
func (s *sources) pick(paths []string, seen time.Time) (worth, made []string) {
	var echoes []string
	for _, path := range paths {
		switch known := slices.Index(s.made, path); {
		case !s.isEcho(path, seen):
			if known >= 0 {
				s.made = slices.Delete(s.made, known, known+1) // a person writes it, too
			}
			worth = append(worth, path)
		case known < 0:
			echoes = append(echoes, path)
		}
	}
	switch {
	case len(worth) > 0:
		s.echoes = 0
		return append(worth, echoes...), nil
	case len(echoes) == 0:
		return nil, nil
	case s.echoes == mostEchoes:
		s.made = append(s.made, echoes...)
		return nil, echoes
	}
	s.echoes++
	return echoes, nil
}

// isEcho reports whether a change came with the last build.
func (s *sources) isEcho(path string, seen time.Time) bool {
	end := s.built
	if !isCode(path) {
		end = latest(s.built, s.swapped).Add(logDelay)
	}
	if seen.Sub(end) > echoSeen {
		return false
	}
	info, err := os.Stat(path)
	return err != nil || !info.ModTime().After(end) || info.ModTime().After(seen)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// isSource reports whether a file may have a part in a worker's build: neither
// the manifest nor a plugin is a source.
func (d *dev) isSource(w *manifest.Worker, path string) bool {
	if path == filepath.Join(d.manifest.Dir, filepath.Base(d.env.manifestPath())) {
		return false
	}
	if slices.ContainsFunc(d.manifest.Workers, func(other manifest.Worker) bool { return other.Path == path }) || slices.Contains(d.sources.dropped, path) {
		return false
	}
	for _, dir := range append([]string{filepath.Dir(w.Path)}, d.dirs...) {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// codeEnds are the ends of names of what people write for compilers.
var codeEnds = []string{
	".go", ".mod", ".sum", ".work", ".rs", ".toml", ".lock", ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".inc", ".s", ".S", ".zig", ".zon",
	".ts", ".tsx", ".mts", ".js", ".jsx", ".mjs", ".cjs", ".py", ".pyi", ".proto", ".sh", ".wat", ".wit", ".swift", ".kt", ".cs", ".rb", ".hs", ".mbt",
	"package.json", "tsconfig.json", "Makefile", "CMakeLists.txt", "requirements.txt",
}

// isCode reports whether a file is a source by its name, even if a change of it, such as
// of a comment, makes the same plugin.
func isCode(path string) bool {
	return slices.ContainsFunc(codeEnds, func(end string) bool { return strings.HasSuffix(path, end) })
}

// digests returns those of workers' plugins; one that can't be read has that of nothing.
func digests(workers []manifest.Worker) [][sha256.Size]byte {
	all := make([][sha256.Size]byte, len(workers))
	for i := range workers {
		data, _ := os.ReadFile(workers[i].Path)
		all[i] = sha256.Sum256(data)
	}
	return all
}

// storeNames are what a host keeps in the folder of its store and in that for its data, which
// may be the one of the sources.
var storeNames = []string{
	sqlitedb.FileName, sqlitedb.FileName + "-wal", sqlitedb.FileName + "-shm", sqlitedb.FileName + "-witness",
	sqlitedb.LockName, sqlitedb.ReserveName, journal.FileName, crash.Folder, compiledDir, payloadsDir,
}

// written returns the files and folders that a host and its workers write.
func written(m *manifest.Manifest) []string {
	paths := []string{m.Host.TokenFile, addressFile(&m.Host)}
	for _, dir := range []string{m.Host.Data, m.Host.Store.Dir} {
		if dir == "" {
			continue
		}
		paths = append(paths, dir)
		for _, name := range storeNames {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	for i := range m.Payload.Stores {
		if path := m.Payload.Stores[i].Path; path != "" {
			paths = append(paths, path)
		}
	}
	for i := range m.Workers {
		for _, mount := range m.Workers[i].System.Mounts {
			if mount.Write {
				paths = append(paths, mount.Host)
			}
		}
	}
	return paths
}

// ownFiles are those that the output of this process goes to.
func (e *env) ownFiles() []fs.FileInfo {
	var own []fs.FileInfo
	for _, stream := range []*stream{e.stdout, e.stderr} {
		f, ok := stream.w.(*os.File)
		if !ok {
			continue
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			own = append(own, info)
		}
	}
	return own
}
