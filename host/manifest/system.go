package manifest

import (
	"path"
	"slices"
	"strings"

	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime"
)

// argument checks an argument of a command.
func argument(s string) (string, error) {
	switch {
	case strings.ContainsRune(s, 0):
		return "", wrong("", "an argument has a NUL byte")
	case len(s) > MaxConfigBytes:
		return "", wrong("", "an argument of %d bytes is longer than %v", len(s), Size(MaxConfigBytes))
	}
	return s, nil
}

// mounts is a list of folders, each as FOLDER:PATH or FOLDER:PATH:rw.
func mounts(dir string, p *[]runtime.Mount) setting {
	var list []string
	s := texts(&list, maxMounts, func(s string) (string, error) { return s, nil })
	return setting{
		set: func(v any) error {
			if err := s.set(v); err != nil {
				return err
			}
			var mounts []runtime.Mount
			for _, written := range list {
				m, err := mount(dir, written)
				if err != nil {
					return err
				}
				if slices.ContainsFunc(mounts, func(o runtime.Mount) bool { return o.Guest == m.Guest }) {
					return wrong("", "two folders are mounted at %s", text.Quote(m.Guest, text.Short))
				}
				mounts = append(mounts, m)
			}
			*p = mounts
			return nil
		},
		show: func() string {
			quoted := make([]string, len(*p))
			for i, m := range *p {
				written := showPath(dir, m.Host) + ":" + m.Guest
				if m.Write {
					written += ":rw"
				}
				quoted[i] = quote(written)
			}
			return "[" + strings.Join(quoted, ", ") + "]"
		},
	}
}

// mount reads one of them. That the folder is there is for the host to find
// out, which may make it first.
func mount(dir, written string) (runtime.Mount, error) {
	const hint = `write "FOLDER:PATH", such as "./data:/data", and ":rw" behind it to let it be changed`
	rest, write := strings.CutSuffix(written, ":rw")
	rest, _ = strings.CutSuffix(rest, ":ro")
	i := strings.LastIndexByte(rest, ':')
	if i <= 0 {
		return runtime.Mount{}, wrong(hint, "%s does not say where the folder is to be found", text.Quote(written, text.Short))
	}
	folder, guest := rest[:i], rest[i+1:]
	if !path.IsAbs(guest) || path.Clean(guest) != guest || strings.ContainsRune(guest, 0) {
		return runtime.Mount{}, wrong(hint, "%s is not an absolute path without dots and double slashes", text.Quote(guest, text.Short))
	}
	abs, err := resolve(dir, folder)
	if err != nil {
		return runtime.Mount{}, err
	}
	return runtime.Mount{Host: abs, Guest: guest, Write: write}, nil
}

// features is a list of names of [runtime.Features].
func features(p *[]string) setting {
	s := texts(p, maxFeatures, feature)
	return setting{
		set: func(v any) error {
			err := s.set(v)
			slices.Sort(*p)
			*p = slices.Compact(*p)
			return err
		},
		show: s.show,
	}
}

// feature checks the name of a feature.
func feature(s string) (string, error) {
	if slices.Contains(runtime.Features(), s) {
		return s, nil
	}
	hint := "use " + quoteList(runtime.Features())
	if near := text.Nearest(s, runtime.Features()); near != "" {
		hint = "did you mean " + quote(near) + "?"
	}
	return "", wrong(hint, "%s is not a feature", text.Quote(s, text.Short))
}

// jobEnv says whether a command finds its job in its environment.
func jobEnv(bare *bool) setting {
	tells := !*bare
	s := boolean(&tells)
	return setting{
		set: func(v any) error {
			err := s.set(v)
			*bare = !tells
			return err
		},
		show: s.show,
	}
}

// clock says how exact clocks are.
func clock(p *bool) setting {
	const coarse, precise = "coarse", "precise"
	name := coarse
	if *p {
		name = precise
	}
	s := oneOf(&name, coarse, precise)
	return setting{
		set: func(v any) error {
			err := s.set(v)
			*p = name == precise
			return err
		},
		show: s.show,
	}
}
