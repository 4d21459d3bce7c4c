package wasm

import (
	"slices"

	"github.com/jobhost/jobhost/runtime/extismabi"
	"github.com/jobhost/jobhost/runtime/jobabi"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasiabi"
	"github.com/jobhost/jobhost/runtime/wasm/preflight"
)

func (nativeABI) imports(m *module.Module) error {
	return preflight.Imports(m, preflight.Offer{jobabi.Module: nativeOffer(), wasiabi.Module: wasiOffer()})
}

func (commandABI) imports(m *module.Module) error {
	return preflight.Imports(m, preflight.Offer{wasiabi.Module: wasiOffer()})
}

func (a *extismABI) imports(m *module.Module) error {
	// Imports from modules of the plugin are checked when these are linked.
	own := *m
	own.Imports = slices.DeleteFunc(slices.Clone(m.Imports), func(i module.Import) bool { return slices.Contains(a.names, i.Module) })
	offer := preflight.Offer{extismabi.Module: extismOffer(), wasiabi.Module: wasiOffer()}
	if err := preflight.Foreign(&own, offer); err != nil {
		return err
	}
	if err := extismabi.Check(m.Imports, a.names); err != nil {
		return err
	}
	return preflight.Imports(&own, offer)
}

func extismOffer() map[string]preflight.Offered {
	offer := map[string]preflight.Offered{}
	for _, f := range extismabi.Functions() {
		offer[f.Name] = preflight.Offered{Type: module.FuncType{Params: f.Params, Results: f.Results}}
	}
	return offer
}

func nativeOffer() map[string]preflight.Offered {
	offer := map[string]preflight.Offered{}
	for _, f := range jobabi.Functions() {
		offer[f.Name] = preflight.Offered{Type: module.FuncType{Params: f.Params, Results: f.Results}}
	}
	return offer
}

func wasiOffer() map[string]preflight.Offered {
	offer := map[string]preflight.Offered{}
	for _, f := range wasiabi.Functions() {
		offer[f.Name] = preflight.Offered{Type: module.FuncType{Params: f.Params, Results: f.Results}}
	}
	return offer
}
