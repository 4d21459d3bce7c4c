package manifest

import (
	"fmt"
	"strings"

	"github.com/jobhost/jobhost/host/config"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime"
)

// SetLimit sets a limit by its key in a worker's section, such as "memory", to what could
// stand there. It is for commands that have no manifest.
func SetLimit(l *runtime.Limits, key, text string) error {
	w := Worker{Worker: config.Worker{Limits: *l}}
	for _, f := range workerFields() {
		if f.name != key {
			continue
		}
		if err := f.bind("", &w).set(text); err != nil {
			return err
		}
		*l = w.Limits
		return nil
	}
	return fmt.Errorf("a worker has no setting %s", key)
}

// ParseVariable reads a variable of a plugin's environment, NAME=VALUE; native says that it is one of a native plugin.
func ParseVariable(written string, native bool) (name, value string, err error) {
	name, value, ok := strings.Cut(written, "=")
	if !ok {
		return "", "", wrong("write NAME=VALUE", "%s has no value", text.Quote(written, text.Short))
	}
	if err := checkVariable(name, native); err != nil {
		return "", "", err
	}
	return name, value, checkVariableText(value)
}

// jobVariables begin the names of the variables that tell a command of its job.
const jobVariables = "JOBHOST_"

func checkVariable(name string, native bool) error {
	switch {
	case !envPattern.MatchString(name):
		return wrong("use A-Z a-z 0-9 _", "%s is not the name of an environment variable", text.Quote(name, text.Short))
	case !native && strings.HasPrefix(name, jobVariables):
		return wrong("a command finds its config as JOBHOST_CONFIG_NAME", "%s is a name for what the host says", text.Quote(name, text.Short))
	}
	return nil
}

func checkVariableText(s string) error {
	if strings.ContainsRune(s, 0) || len(s) > MaxConfigBytes {
		return wrong("", "text of %d bytes is longer than %v, or has a NUL byte", len(s), Size(MaxConfigBytes))
	}
	return nil
}
