package host_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// A host within another program, with its jobs in memory.
func ExampleHost() {
	store, err := sqlitequeue.Open(sqlitequeue.Options{})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := wasm.New(wasm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	h, err := host.New(host.Config{
		Store:  store,
		Engine: engine,
		Workers: []host.Worker{
			{Name: "echo", Plugin: guests.Echo, PoolSize: 2, QueueCapacity: 1000},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	server, err := h.AwaitReady(ctx)
	if err != nil {
		log.Fatal(err)
	}

	receipt, err := server.Submit(ctx, jobhost.Spec{Worker: "echo", Payload: []byte("hello")})
	if err != nil {
		log.Fatal(err)
	}
	job, err := server.Wait(ctx, receipt.ID)
	if err != nil {
		log.Fatal(err)
	}
	result, err := server.Result(ctx, job.ID, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", job.State, result.Data)

	stop()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	_ = engine.Close(context.Background())
	_ = store.Close()
	// Output: succeeded: hello
}
