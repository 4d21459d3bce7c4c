package manifest

// Changed returns the names of the settings of [host], such as "host.listen",
// that next gives another value.
func (m *Manifest) Changed(next *Manifest) []string {
	var changed []string
	for _, f := range hostFields() {
		if f.bind(m.Dir, &m.Host).show() != f.bind(next.Dir, &next.Host).show() {
			changed = append(changed, "host."+f.name)
		}
	}
	return changed
}
