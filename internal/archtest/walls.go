package archtest

import (
	"path"
	"slices"
	"strings"
)

// checkWalls finds the imports that break through a wall, and reports each at
// its position, with the import path that leads there.
func (c *checker) checkWalls() {
	packages := map[string][]*file{}
	for _, f := range c.tree.files {
		if !strings.HasSuffix(f.path, "_test.go") {
			packages[f.dir] = append(packages[f.dir], f)
		}
	}
	for _, wall := range c.rules.Walls {
		for dir, way := range c.reach(packages, wall.From) {
			for _, f := range packages[dir] {
				c.checkWall(f, wall, way)
			}
		}
	}
}

func (c *checker) checkWall(f *file, wall Wall, way []string) {
	for _, spec := range f.syntax.Imports {
		target, _ := c.tree.relative(importPath(spec))
		if within(target, wall.To...) {
			c.file = f
			c.report(spec.Pos(), "walls", "%s may not reach %s: %s", strings.Join(way, " → "), target, wall.Why)
		}
	}
}

// reach returns the folders that packages import, directly or not, including
// themselves, each with the shortest path to it.
func (c *checker) reach(packages map[string][]*file, from []string) map[string][]string {
	ways := map[string][]string{}
	var next []string
	for dir := range packages {
		if slices.ContainsFunc(from, func(pattern string) bool { return matches(dir, pattern) }) && !slices.Contains(c.rules.Suites, path.Base(dir)) {
			ways[dir] = []string{display(dir)}
			next = append(next, dir)
		}
	}
	slices.Sort(next)
	for ; len(next) > 0; next = next[1:] {
		for _, f := range packages[next[0]] {
			for _, spec := range f.syntax.Imports {
				target, ours := c.tree.relative(importPath(spec))
				if _, known := ways[target]; !ours || known {
					continue
				}
				ways[target] = append(slices.Clone(ways[next[0]]), display(target))
				next = append(next, target)
			}
		}
	}
	return ways
}

// relative returns the folder of a package of the module, or the import path of
// any other package.
func (t *Tree) relative(target string) (dir string, ours bool) {
	rest, ours := strings.CutPrefix(target, t.Module)
	if !ours || rest != "" && rest[0] != '/' {
		return target, false
	}
	return strings.TrimPrefix(rest, "/"), true
}

// matches reports whether a folder matches a pattern of [Wall].
func matches(dir, pattern string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return within(dir, below)
	}
	return dir == pattern
}
