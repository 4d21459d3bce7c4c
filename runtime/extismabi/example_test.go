package extismabi_test

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/jobhost/jobhost/runtime/extismabi"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// call is the context of the calls into a plugin.
type call struct {
	context.Context
	attempt *hostcall.Attempt
	plugin  *extismabi.Plugin
}

func (c *call) Attempt() *hostcall.Attempt { return c.attempt }
func (c *call) Extism() *extismabi.Plugin  { return c.plugin }
func (c *call) Life() context.Context      { return c.Context }

// What an engine does with a plugin of one module.
func Example() {
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	kernel, err := extismabi.Define(ctx, r) // once per runtime
	if err != nil {
		fmt.Println(err)
		return
	}

	// Once per instance.
	plugin, err := kernel.NewPlugin(ctx, extismabi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	at := &hostcall.Attempt{Limits: hostcall.Limits{OutputBytes: 1 << 20}}
	starting := &call{experimental.WithImportResolver(ctx, plugin.Resolve), at, plugin}
	guest, err := r.InstantiateWithConfig(starting, probe, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		fmt.Println(err)
		return
	}
	entry := guest.ExportedFunction("vowels")

	// Once per attempt.
	for _, input := range []string{"hello world", "rhythm"} {
		at.Input = []byte(input)
		if failure := plugin.Begin(at); failure != nil {
			fmt.Println(failure.Message)
			continue
		}
		rc, err := entry.Call(&call{ctx, at, plugin})
		if err != nil {
			fmt.Println(err)
			return
		}
		outcome := plugin.End(at, api.DecodeU32(rc[0]))
		fmt.Printf("%s: %s, %s vowels\n", input, outcome.Kind, outcome.Output)
		plugin.Reset()
	}
	// Output:
	// hello world: succeeded, 3 vowels
	// rhythm: succeeded, 0 vowels
}
