package wasiabi

import (
	"io/fs"
	"math"
	"path"
	"strings"
)

// A guest can't follow a link out of its mount, but the tools of the operator would. So
// none is made, nor moved to where it leads out. Where a link leads follows from its text
// and from how deep its folder lies, if ".." stands at the beginning of the text only, and if
// no folder on the way to it is a link: then each ".." is one folder up, and what follows
// goes down again, through links that were judged themselves.

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

// depth returns how many folders of the mount lie around a name in the directory, and 0 if
// that can't be told for sure.
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

// movesOut reports whether something that gets another name is, or has in it, a link that
// leads out of the mount from there.
func (d *openDir) movesOut(old string, to *openDir, name string) bool {
	info, err := d.root.Lstat(old)
	switch {
	case err != nil:
		return false // which the move tells
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := d.root.Readlink(old)
		return err != nil || to.leadsOut(name, target)
	case !info.IsDir():
		return false
	}
	rises := d.depth(old) - to.depth(name)
	return rises > 0 && d.holdsLinkOut(old, to, name)
}

// holdsLinkOut looks at all links in a folder that comes to lie less deep.
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
