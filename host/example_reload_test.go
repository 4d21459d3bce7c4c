package host_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// Workers change while the host runs: one gets another plugin, one is added.
func ExampleHost_SetWorkers() {
	store, err := sqlitequeue.Open(sqlitequeue.Options{})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := wasm.New(wasm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	worker := host.Worker{Name: "first", Plugin: guests.Noop, PoolSize: 2, QueueCapacity: 1000}
	h, err := host.New(host.Config{Store: store, Engine: engine, Workers: []host.Worker{worker}})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	if _, err := h.AwaitReady(ctx); err != nil {
		log.Fatal(err)
	}

	second := worker
	worker.Plugin, second.Name = guests.Echo, "second"
	report, err := h.SetWorkers(ctx, []host.Worker{worker, second})
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range report.Workers {
		fmt.Printf("%s: %s, version %d\n", w.Name, w.Change, w.Version)
	}

	stop()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	_ = engine.Close(context.Background())
	_ = store.Close()
	// Output:
	// first: changed, version 2
	// second: added, version 1
}
