package api_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
	"github.com/jobhost/jobhost/host/api"
	"github.com/jobhost/jobhost/host/api/wire"
)

// payload is 1 KB of text.
var payload = strings.Repeat("the quick brown fox jumps over the lazy dog. ", 23)[:1024]

func quiet(c *api.Config) { c.Logger = slog.New(slog.DiscardHandler) }

// alone leaves the jobs out, so that what is measured is the API.
func alone(c *api.Config) {
	quiet(c)
	c.Server = api.Serving(taker{serverOf(c)})
}

func report(b *testing.B, jobs int) {
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkCeiling is what net/http does here with a handler that only reads:
// what BenchmarkSubmit is to be compared with, in the same run.
func BenchmarkCeiling(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
	}))
	b.Cleanup(server.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	b.Cleanup(transport.CloseIdleConnections)
	post(b, &http.Client{Transport: transport}, server.URL)
}

// BenchmarkSubmit posts jobs one by one over 64 connections; client and
// server share the machine. The allocations are those of both.
func BenchmarkSubmit(b *testing.B) {
	f := setup(b, options{api: alone})
	post(b, f.http, "http://"+f.addr)
}

func post(b *testing.B, c *http.Client, base string) {
	body := []byte(`{"worker":"test","payload":"` + payload + `"}`)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := http.NewRequest("POST", base+"/v1/jobs", bytes.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			r.Header["Authorization"] = []string{"Bearer " + token}
			r.Header["Content-Type"] = []string{wire.JSON}
			resp, err := c.Do(r)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 201 {
				b.Errorf("got %s", resp.Status)
			}
		}
	})
	report(b, b.N)
}

// BenchmarkClientSubmit does the same with package client.
func BenchmarkClientSubmit(b *testing.B) {
	f := setup(b, options{api: alone})
	c := client.New(f.addr, token)
	b.Cleanup(c.Close)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Submit(b.Context(), jobhost.Spec{Worker: "test", Payload: []byte(payload)}); err != nil {
				b.Error(err)
				return
			}
		}
	})
	report(b, b.N)
}

// BenchmarkHandler is the server's part alone: no network, no client.
func BenchmarkHandler(b *testing.B) {
	a, err := api.New(api.Config{Server: api.Serving(taker{}), Token: token})
	if err != nil {
		b.Fatal(err)
	}
	body := []byte(`{"worker":"test","payload":"` + payload + `"}`)
	r, err := http.NewRequest("POST", "http://localhost/v1/jobs", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header["Authorization"], r.Header["Content-Type"] = []string{"Bearer " + token}, []string{wire.JSON}
	r.RemoteAddr, r.ContentLength = "127.0.0.1:1", int64(len(body))
	reader := bytes.NewReader(body)
	r.Body = io.NopCloser(reader)
	w := nowhere{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(body)
		clear(w.header)
		a.ServeHTTP(w, r)
	}
}

type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) WriteHeader(status int) {
	if status != 201 {
		panic(fmt.Sprint("got status ", status))
	}
}

// BenchmarkBatch posts batches of 1,000 jobs over 4 connections.
func BenchmarkBatch(b *testing.B) {
	const jobs = 1000
	f := setup(b, options{api: alone})
	body := bytes.Repeat([]byte(`{"worker":"test","payload":"`+payload+`"}`+"\n"), jobs)
	b.ReportAllocs()
	b.SetParallelism(2)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := http.NewRequest("POST", "http://"+f.addr+"/v1/jobs:batch", bytes.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			r.Header["Authorization"], r.Header["Content-Type"] = []string{"Bearer " + token}, []string{wire.NDJSON}
			resp, err := f.http.Do(r)
			if err != nil {
				b.Error(err)
				return
			}
			lines, n := bufio.NewScanner(resp.Body), 0
			for ; lines.Scan(); n++ {
			}
			resp.Body.Close()
			if n != jobs {
				b.Errorf("got %d answers", n)
			}
		}
	})
	report(b, b.N*jobs)
}

// BenchmarkClientBatch does the same with package client.
func BenchmarkClientBatch(b *testing.B) {
	const jobs = 1000
	f := setup(b, options{api: alone})
	c := client.New(f.addr, token)
	b.Cleanup(c.Close)
	specs := make([]jobhost.Spec, jobs)
	for i := range specs {
		specs[i] = jobhost.Spec{Worker: "test", Payload: []byte(payload)}
	}
	b.ReportAllocs()
	b.SetParallelism(2)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.SubmitBatch(b.Context(), specs); err != nil {
				b.Error(err)
				return
			}
		}
	})
	report(b, b.N*jobs)
}

// BenchmarkEvents follows the events of a stream of jobs, of which there are never more under
// way than a reader may lag behind.
func BenchmarkEvents(b *testing.B) {
	f := setup(b, options{api: quiet})
	e := f.follow("")
	e.probe()
	underWay := make(chan struct{}, 100)
	var group sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	group.Go(func() {
		for i := range b.N {
			underWay <- struct{}{}
			if _, err := f.host.Submit(b.Context(), jobhost.Spec{Worker: "test", ID: fmt.Sprint("bench-", i)}); err != nil {
				b.Error(err)
			}
		}
	})
	events := 0
	for ended := 0; ended < b.N; {
		m := e.next()
		if events++; m.event == string(jobhost.EventEnded) && strings.Contains(m.data, `"job":"bench-`) {
			ended++
			<-underWay
		}
	}
	group.Wait()
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
