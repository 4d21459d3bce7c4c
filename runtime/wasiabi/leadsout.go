package wasiabi

import (
	"io/fs"
	"math"
	"path"
	"strings"
)

// A guest can't follow a link out of its mount, but the operator's tools would. So none may
// be created, or moved to a place from which it leads out. Where a link leads follows from
// its text and the depth of its folder, provided that ".." occurs only at the beginning of
// the text, and that no folder on the way to it is a link: then each ".." is one folder up,
// and the rest goes down again, through links that were judged themselves.

// climbs returns how many folders up a link of that text leads before it goes down. An
// absolute one, and one that climbs later on, may lead anywhere.
func climbs(target string) (up int) {
	if path.IsAbs(target) {
		return math.MaxInt
	}
	down := false
	for step := range strings.SplitSeq(target, "/") {
		switch {
		case step == "" || step == ".":
		case step != "..":
			down = true
		case down:
			return math.MaxInt
		default:
			up++
		}
	}
	return up
}

// leadsOut reports whether a link of that text and name would lead out of the mount.
func (d *openDir) leadsOut(name, target string) bool { return climbs(target) > d.depth(name) }

// depth returns how many folders of the mount enclose a name in the directory, and 0 if
// that is uncertain.
func (d *openDir) depth(name string) int {
	folder := path.Dir(path.Join(d.path, name))
	if folder == "." || strings.HasPrefix(folder, "..") || !d.inPlace() {
		return 0
	}
	for at := folder; at != "."; at = path.Dir(at) {
		if info, err := d.mount.root.Lstat(at); err != nil || !info.IsDir() {
			return 0
		}
	}
	return strings.Count(folder, "/") + 1
}

// movesOut reports whether something that is to be renamed is, or contains, a link that
// would lead out of the mount from its new place.
func (d *openDir) movesOut(old string, to *openDir, name string) bool {
	info, err := d.root.Lstat(old)
	switch {
	case err != nil:
		return false // the move reports the error
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := d.root.Readlink(old)
		return err != nil || to.leadsOut(name, target)
	case !info.IsDir():
		return false
	}
	rises := d.depth(old) - to.depth(name)
	return rises > 0 && d.holdsLinkOut(old, to, name)
}

// holdsLinkOut checks all links in a folder that is moved to a smaller depth.
func (d *openDir) holdsLinkOut(old string, to *openDir, name string) bool {
	out, depth := false, to.depth(name)+1
	err := fs.WalkDir(d.root.FS(), path.Clean(old), func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type() != fs.ModeSymlink {
			return err
		}
		target, err := d.root.Readlink(at)
		if err != nil {
			return err
		}
		inside := strings.TrimPrefix(at, path.Clean(old)+"/")
		if climbs(target) > depth+strings.Count(inside, "/") {
			out = true
			return fs.SkipAll
		}
		return nil
	})
	return out || err != nil
}
