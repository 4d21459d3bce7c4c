package test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// Strangers who open more connections to a standby than they may have take those of each other, not that of a client with the
// token, who reads what the leader answers.
func TestClusterStrangersAtAStandby(t *testing.T) {
	t.Parallel()
	const strangers = 3200 // 3,072 may be open
	c := newTrio(t)
	ctx, cancel := context.WithTimeout(t.Context(), roundTime)
	defer cancel()
	leader, _ := c.awaitLeader(nil)
	h := c.standby(leader, 0)
	token, err := os.ReadFile(filepath.Join(h.dir, "data", "token"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.addr+"/v1/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	for range strangers {
		conn, err := net.DialTimeout("tcp", h.addr, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }() //nolint:revive // they are to be open until then
	}
	// The last one was accepted when it is answered.
	if answer, err := http.Get("http://" + h.addr + "/healthz"); err == nil { //nolint:noctx // it is answered at once
		_ = answer.Body.Close()
	}
	c.submit(ctx, jobhost.Spec{ID: "seen", Worker: "echo"})
	for lines := bufio.NewScanner(resp.Body); ; {
		if !lines.Scan() {
			t.Fatalf("the stream has ended: %v", lines.Err())
		}
		if strings.Contains(lines.Text(), `"seen"`) {
			return
		}
	}
}
