package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/extism"
)

// SetPlugin gives a worker what was read from the worker's Path: a module, or a manifest
// of Extism, whose settings are added to the worker's. Its files are found from
// the folder that it is in. Where both say something, the stricter limit holds,
// and the worker's config.
func SetPlugin(w *Worker, data []byte) error {
	if w.ABI == runtime.ABIJobhost || w.ABI == runtime.ABIWASI || !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		w.Plugin = data
		return nil
	}
	m, err := extism.ParseManifest(data)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(w.Path), err)
	}
	w.ABI, w.Extism = runtime.ABIExtism, m.Limits
	dir := filepath.Dir(w.Path)
	for n, source := range m.Modules {
		module, err := readExtism(dir, source)
		if err != nil {
			return fmt.Errorf("%s: module %d: %w", filepath.Base(w.Path), n+1, err)
		}
		if n == m.Main {
			w.Plugin = module
		} else {
			w.Linked = append(w.Linked, runtime.Linked{Name: source.Name, Bytes: module})
		}
	}
	limits := w.Limits.OrDefaults()
	if m.MemoryBytes > 0 {
		limits.MemoryBytes = min(limits.MemoryBytes, m.MemoryBytes)
	}
	if m.Timeout > 0 {
		limits.Timeout = min(limits.Timeout, m.Timeout)
	}
	w.Limits = limits
	config := maps.Clone(m.Config)
	if config == nil {
		config = map[string]string{}
	}
	maps.Copy(config, w.Config)
	w.Config = config
	for _, mount := range m.Mounts {
		folder := mount.Host
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(dir, folder)
		}
		w.System.Mounts = append(w.System.Mounts, runtime.Mount{Host: folder, Guest: mount.Guest, Write: !mount.ReadOnly})
	}
	return nil
}

// readExtism reads one of the modules, and checks its digest.
func readExtism(dir string, source extism.Source) ([]byte, error) {
	data := source.Data
	if source.Path != "" {
		var err error
		if data, err = manifest.ReadModule(dir, source.Path); err != nil {
			return nil, err
		}
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); source.SHA256 != "" && got != source.SHA256 {
		return nil, &jobhost.Error{
			Code: jobhost.CodeDenied, Message: fmt.Sprintf("its digest is %s, not the one in the Extism manifest", got),
			Hint: "restore the file, or give the new hash if the change is meant",
		}
	}
	return data, nil
}
