package wasm

import (
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
