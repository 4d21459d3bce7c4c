package wasm

import (
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/module"
)

// checkFeatures rejects unknown names of features.
func checkFeatures(names []string) error {
	for _, name := range names {
		if !slices.Contains(runtime.Features(), name) {
			return &jobhost.Error{
				Code: jobhost.CodeInvalid, Field: "features", Message: "is allowed the unknown feature " + text.Line(name, 50),
				Hint: "the features are " + strings.Join(runtime.Features(), ", "),
			}
		}
	}
	return nil
}

// coreFeatures are those that the compiler accepts: what was rejected before is
// rejected by it as well.
func (p *Plugin) coreFeatures() api.CoreFeatures {
	return api.CoreFeaturesV2.SetEnabled(api.CoreFeatureSIMD, slices.Contains(p.info.Features, runtime.FeatureSIMD))
}

// needs records which features a module of the plugin needs.
func (p *Plugin) needs(m *module.Module) {
	if m.Vectors && !slices.Contains(p.info.Features, runtime.FeatureSIMD) {
		p.info.Features = append(p.info.Features, runtime.FeatureSIMD)
	}
}
