package manifest

import (
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// grantee checks the name of a worker that is granted to another one.
func grantee(s string) (string, error) {
	if err := jobhost.CheckWorker(s); err != nil {
		return "", wrong(jobhost.HintOf(err), "%s is not the name of a worker", text.Quote(s, text.Short))
	}
	return s, nil
}

// checkGrants sees that grants are for workers of the manifest: one for another
// is a slip of the pen, or what is left of a worker that was removed.
func (r *reader) checkGrants(workers []Worker, names []string) {
	for i := range workers {
		r.checkGrant(workers[i].Name, "submit", workers[i].MaySubmit, names)
		r.checkGrant(workers[i].Name, "watch", workers[i].MayWatch, names)
	}
}

func (r *reader) checkGrant(worker, grant string, granted, names []string) {
	for _, to := range granted {
		if slices.Contains(names, to) {
			continue
		}
		hint := "name a worker of this manifest"
		if near := text.Nearest(to, names); near != "" {
			hint = "did you mean " + near + "?"
		}
		r.faultValue([]string{"worker", worker, grant}, wrong(hint, "there is no worker %s", text.Quote(to, text.Short)))
	}
}
