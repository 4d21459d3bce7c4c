package manifest

import (
	"regexp"
	"strings"

	"github.com/jobhost/jobhost/internal/text"
)

// inStore is where states are kept unless the manifest says otherwise.
const inStore = "store"

// cloudName is what projects and databases of Google's cloud are called.
var cloudName = regexp.MustCompile(`^[a-z][a-z0-9.:-]{0,62}$`)

// states says where the states of tasks are kept.
func states(p *States) setting {
	const hint = `use "store", or "firestore:PROJECT" with the id of a Google Cloud project`
	return parsed("store",
		func(s string) error {
			if s == inStore {
				*p = States{}
				return nil
			}
			scheme, where, _ := strings.Cut(s, ":")
			project, database, more := strings.Cut(where, "/")
			if scheme != "firestore" || !cloudName.MatchString(project) || more && !cloudName.MatchString(database) {
				// Only the scheme: what follows may hold a password.
				return wrong(hint, "%s is no place for states", text.Quote(scheme+":", text.Short))
			}
			*p = States{Project: project, Database: database}
			return nil
		},
		func() string {
			switch {
			case p.Project == "":
				return inStore
			case p.Database == "":
				return "firestore:" + p.Project
			}
			return "firestore:" + p.Project + "/" + p.Database
		})
}
