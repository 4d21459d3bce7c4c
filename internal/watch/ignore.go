package watch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ignoreNames are the files whose patterns exclude others from being watched.
var ignoreNames = []string{".gitignore", ".ignore"}

// mostIgnore bounds how much of such a file is read.
const mostIgnore = 64 << 10

// rule is a line of an ignore file, as https://git-scm.com/docs/gitignore describes it.
type rule struct {
	base    string // the absolute folder of the file
	pattern *regexp.Regexp
	keeps   bool // the line begins with "!"
	folders bool // it ends with a slash
	deep    bool // it has no other slash, so that only the last element of a path is matched
}

// readRules returns the rules that the ignore files of a folder add.
func readRules(dir string) []rule {
	var rules []rule
	for _, name := range ignoreNames {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(data) > mostIgnore {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if r, ok := parseRule(dir, line); ok {
				rules = append(rules, r)
			}
		}
	}
	return rules
}

// rulesAbove returns the rules for a tree from the folders above it, up to the root of its
// repository; none if it is not in one.
func rulesAbove(tree string) []rule {
	var above []string
	for dir := tree; ; dir = filepath.Dir(dir) {
		if dir != tree {
			above = append(above, dir)
		}
		// In a worktree, or a submodule, it is a file.
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			break
		}
		if filepath.Dir(dir) == dir {
			return nil
		}
	}
	var rules []rule
	for _, dir := range slices.Backward(above) {
		rules = append(rules, readRules(dir)...)
	}
	return rules
}

// parseRule parses a line. ok is false for comments and invalid patterns.
func parseRule(dir, line string) (r rule, ok bool) {
	line = strings.TrimRight(line, " \t\r\n")
	if line == "" || line[0] == '#' {
		return r, false
	}
	r.base = dir
	line, r.keeps = strings.CutPrefix(line, "!")
	line, r.folders = strings.CutSuffix(line, "/")
	line = strings.TrimPrefix(line, `\`) // before # or !
	r.deep = !strings.Contains(line, "/")
	p, err := regexp.Compile("^" + globPattern(strings.TrimPrefix(line, "/")) + "$")
	r.pattern = p
	return r, err == nil && line != ""
}

// globPattern converts a pattern of an ignore file to a regular expression.
func globPattern(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); {
		switch rest := glob[i:]; {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString("(.*/)?")
			i += 3
		case strings.HasPrefix(rest, "**"):
			b.WriteString(".*")
			i += 2
		case rest[0] == '*':
			b.WriteString("[^/]*")
			i++
		case rest[0] == '?':
			b.WriteString("[^/]")
			i++
		case rest[0] == '[' && strings.Contains(rest, "]"):
			end := strings.Index(rest, "]") + 1
			b.WriteString(strings.Replace(rest[:end], "[!", "[^", 1))
			i += end
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
			i++
		}
	}
	return b.String()
}

// excluded reports whether the last rule that matches a path excludes it.
func excluded(rules []rule, name string, folder bool) bool {
	out := false
	for i := range rules {
		r := &rules[i]
		rel, err := filepath.Rel(r.base, name)
		if err != nil || !filepath.IsLocal(rel) || r.folders && !folder {
			continue
		}
		if rel = filepath.ToSlash(rel); r.deep {
			rel = path.Base(rel)
		}
		if r.pattern.MatchString(rel) {
			out = !r.keeps
		}
	}
	return out
}
