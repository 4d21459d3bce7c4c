package wasiabi_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// A command runs once in each module; the system serves one attempt after the other.
func Example() {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	if err := wasiabi.Instantiate(ctx, r); err != nil {
		fmt.Println(err)
		return
	}
	system, err := wasiabi.New(wasiabi.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer system.Close()
	caller := &frame{ctx, system}

	for _, payload := range []string{"shout", "exit 3"} {
		at := &hostcall.Attempt{Worker: "shouter", Input: []byte(payload), Limits: hostcall.Limits{OutputBytes: 100, LogBytes: 1000, LineBytes: 100}}
		system.Begin(at, wasiabi.Command)
		config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)
		guest, err := r.InstantiateWithConfig(caller, guests.LibC, config)
		if err != nil {
			fmt.Println(err)
			return
		}
		code := uint32(0)
		_, err = guest.ExportedFunction("_start").Call(caller)
		if exit, ok := errors.AsType[*wasiabi.Exit](err); ok {
			code = exit.Code
		}
		outcome := system.Outcome(code)
		system.End()
		_ = guest.Close(ctx)

		fmt.Printf("%v %q", outcome.Kind, outcome.Output)
		if outcome.Failure != nil {
			fmt.Printf(" %s", outcome.Failure.Message)
		}
		fmt.Println()
	}
	// Output:
	// succeeded "SHOUT"
	// failed "" exit code 3: about to exit
}

func ExampleEnviron() {
	at := &hostcall.Attempt{
		Job: "order-17", Worker: "mailer", Tasks: 1, Number: 2,
		Config: map[string]string{"smtp.host": "mail.example.com"},
	}
	for _, variable := range wasiabi.Environ(at) {
		fmt.Println(variable)
	}
	// Output:
	// JOBHOST_JOB_ID=order-17
	// JOBHOST_TASK=0
	// JOBHOST_TASKS=1
	// JOBHOST_ATTEMPT=2
	// JOBHOST_PRIORITY=normal
	// JOBHOST_WORKER=mailer
	// JOBHOST_TRACE=
	// JOBHOST_CONFIG_SMTP_HOST=mail.example.com
}
