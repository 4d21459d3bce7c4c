package manifest

import "strings"

// Changed returns the names of the settings of [host], [cluster], [fibers] and [workflows], such
// as "host.listen", that next gives another value, and "payload" if anything of that
// is another.
func (m *Manifest) Changed(next *Manifest) []string {
	var changed []string
	for _, f := range hostFields() {
		if f.name == "trust" {
			continue // it says something of workers, which are loaded anew
		}
		if f.bind(m.Dir, &m.Host).show() != f.bind(next.Dir, &next.Host).show() {
			changed = append(changed, "host."+f.name)
		}
	}
	for _, f := range clusterFields() {
		if f.bind(m.Dir, &m.Cluster).show() != f.bind(next.Dir, &next.Cluster).show() {
			changed = append(changed, "cluster."+f.name)
		}
	}
	for _, f := range fibersFields() {
		if f.bind(m.Dir, &m.Fibers).show() != f.bind(next.Dir, &next.Fibers).show() {
			changed = append(changed, "fibers."+f.name)
		}
	}
	for _, f := range workflowsFields() {
		if f.bind(m.Dir, &m.WorkflowSettings).show() != f.bind(next.Dir, &next.WorkflowSettings).show() {
			changed = append(changed, "workflows."+f.name)
		}
	}
	if m.WorkflowSettings.Retention != next.WorkflowSettings.Retention {
		changed = append(changed, "workflows.retention")
	}
	if m.payloadText() != next.payloadText() {
		changed = append(changed, "payload")
	}
	return changed
}

// payloadText is all that [payload] says, as what it stands for.
func (m *Manifest) payloadText() string {
	var b strings.Builder
	m.showPayload(&b)
	for i := range m.Payload.Stores {
		s := &m.Payload.Stores[i]
		b.WriteString(s.AccessKey.Reveal() + "\x00" + s.SecretKey.Reveal() + "\x00" + s.Password.Reveal() + "\x00")
	}
	for i := range m.Payload.Keys {
		b.WriteString(m.Payload.Keys[i].Secret.Reveal() + "\x00")
	}
	return b.String()
}
