package s3payload_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/payloadtest"
	"github.com/jobhost/jobhost/state/payload/s3payload"
)

const bucket = "jobhost"

// asServer makes this program an S3 server: a process of its own, so that what
// it holds in memory is not taken for the client's.
const asServer = "JOBHOST_TEST_S3_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) == "" {
		os.Exit(m.Run())
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve tells its address and serves until the other end of its input is closed.
func serve() error {
	backend := s3mem.New()
	if err := backend.CreateBucket(bucket); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = listener.Close()
	}()
	server := &http.Server{Handler: gofakes3.New(backend).Server(), ErrorLog: log.New(io.Discard, "", 0)}
	_ = server.Serve(listener)
	return nil
}

// start starts a server that ends with the test, and returns its URL.
func start(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr = append(os.Environ(), asServer+"=1"), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not start: %v", err)
	}
	return "http://" + strings.TrimSpace(address)
}

// places knows where the suite's stores are.
type places struct {
	m sync.Map
}

type place struct {
	cfg    s3payload.Config
	client minio.Core
}

func (p *places) open(t testing.TB, url, prefix string) payload.Store {
	t.Helper()
	cfg := s3payload.Config{
		Endpoint: url, Region: "us-east-1", Bucket: bucket, Prefix: prefix, AccessKey: "key", SecretKey: "secret", PathStyle: true,
	}
	s, err := s3payload.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	client, err := minio.New(strings.TrimPrefix(url, "http://"), &minio.Options{Creds: credentials.NewStaticV4("key", "secret", ""), Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	p.m.Store(s, place{cfg, minio.Core{Client: client}})
	return s
}

func (p *places) of(s payload.Store) place {
	got, _ := p.m.Load(s)
	return got.(place)
}

func TestStore(t *testing.T) {
	url := start(t)
	var p places
	count := 0
	var mu sync.Mutex // protects count
	payloadtest.Run(t, payloadtest.Harness{
		Open: func(t testing.TB) payload.Store {
			mu.Lock()
			defer mu.Unlock()
			count++
			return p.open(t, url, fmt.Sprintf("payloads-%d/", count))
		},
		Again: func(t testing.TB, s payload.Store) payload.Store { return p.open(t, url, p.of(s).cfg.Prefix) },
		Damage: func(t testing.TB, s payload.Store, key string) {
			at := p.of(s)
			name := at.cfg.Prefix + key
			body, _, _, err := at.client.GetObject(t.Context(), bucket, name, minio.GetObjectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(body)
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)/2] ^= 1
			if _, err := at.client.PutObject(t.Context(), bucket, name, bytes.NewReader(data), int64(len(data)), "", "", minio.PutObjectOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		Left: func(t testing.TB, s payload.Store) (left []string) {
			at := p.of(s)
			uploads, err := at.client.ListMultipartUploads(context.Background(), bucket, at.cfg.Prefix, "", "", "", 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range uploads.Uploads {
				left = append(left, u.Key)
			}
			return left
		},
		Lose: func(t testing.TB, s payload.Store, _ string) {
			at := p.of(s)
			uploads, err := at.client.ListMultipartUploads(t.Context(), bucket, at.cfg.Prefix, "", "", "", 100)
			if err != nil || len(uploads.Uploads) != 1 {
				t.Fatalf("%+v, %v", uploads, err)
			}
			if err := at.client.AbortMultipartUpload(t.Context(), bucket, uploads.Uploads[0].Key, uploads.Uploads[0].UploadID); err != nil {
				t.Fatal(err)
			}
		},
		Gone: func(t testing.TB) payload.Store {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			_ = listener.Close() // nothing listens there now
			return p.open(t, "http://"+listener.Addr().String(), "")
		},
	})
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"", "localhost:9000", "ftp://a", "http://user:password@a", "http://a/path", "http://"} {
		if _, err := s3payload.Open(s3payload.Config{Endpoint: endpoint, Bucket: bucket}); err == nil {
			t.Errorf("%q was taken", endpoint)
		}
	}
}
