//go:build ignore

// gensample writes sample.log: a morning of a small fictitious site. It is the
// same in every run.
//
//	go run gensample.go > sample.log
package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

type page struct {
	path         string
	size, status int
}

var (
	pages = []page{
		{"/", 5120, 200},
		{"/", 5120, 200},
		{"/", 5120, 200},
		{"/index.html", 5120, 200},
		{"/assets/site.css", 18211, 200},
		{"/assets/app.js", 74302, 200},
		{"/assets/logo.svg", 3110, 304},
		{"/docs/start?lang=en", 9216, 200},
		{"/docs/start?lang=de", 9401, 200},
		{"/docs/api", 22874, 200},
		{"/blog/first-post", 12044, 200},
		{"/feed.xml", 8333, 304},
		{"/download/tool-1.4.tar.gz", 1843200, 200},
		{"/download/tool-1.4.tar.gz", 524288, 206},
		{"/old-page", 178, 301},
		{"/search?q=%22wasm%22&n=10", 6420, 200},
		{"/api/v1/items", 1337, 200},
		{"/api/v1/items?page=2", 1301, 200},
		{"/api/v1/items/17", 420, 200},
		{"/wp-login.php", 153, 404},
		{"/.env", 153, 404},
		{"/admin", 162, 403},
		{"/favicon.ico", 153, 404},
		{"/api/v1/report", 177, 500},
		{"/api/v1/report", 157, 504},
	}
	clients = []string{
		"192.0.2.10", "192.0.2.10", "192.0.2.23", "192.0.2.77", "198.51.100.4", "198.51.100.4", "198.51.100.4",
		"198.51.100.92", "203.0.113.5", "203.0.113.66", "203.0.113.200", "2001:db8::17", "2001:db8:0:5::1",
	}
	agents = []string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:136.0) Gecko/20100101 Firefox/136.0",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_3 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.3 Mobile/15E148 Safari/604.1",
		"curl/8.12.1", "ExampleBot/2.1 (+https://bot.example/about)", "-",
	}
	// odd are lines that occur in real logs, too, but are not requests.
	odd = []string{
		`203.0.113.66 - - [%s] "\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03" 400 157 "-" "-"`,
		`198.51.100.92 - - [%s] "" 408 0 "-" "-"`,
		`192.0.2.23 - - [%s] "GET /download/to`,
	}
)

func main() {
	r := rand.New(rand.NewPCG(2025, 3))
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	zone := time.FixedZone("", 3600)
	now := time.Date(2025, time.March, 4, 6, 25, 14, 0, zone)
	for i := range 400 {
		now = now.Add(time.Duration(r.ExpFloat64() * 25 * float64(time.Second)))
		stamp := now.Format("02/Jan/2006:15:04:05 -0700")
		if i%67 == 40 {
			fmt.Fprintf(w, odd[i%len(odd)]+"\n", stamp)
			continue
		}
		p, client, user, method := pages[r.IntN(len(pages))], clients[r.IntN(len(clients))], "-", "GET"
		if r.IntN(20) == 0 {
			method = "HEAD"
		}
		if p.path == "/api/v1/items" && r.IntN(2) == 0 {
			method, user, p.status = "POST", "kim", 201
		}
		size := fmt.Sprint(p.size)
		if p.status == 304 || method == "HEAD" {
			size = "-"
		}
		fmt.Fprintf(w, `%s - %s [%s] "%s %s HTTP/%s" %d %s`, client, user, stamp, method, p.path, []string{"1.1", "2.0"}[r.IntN(2)], p.status, size)
		if i%50 != 13 { // some lines are in the common format
			fmt.Fprintf(w, ` "%s" "%s"`, []string{"-", "https://www.example.org/"}[r.IntN(2)], agents[r.IntN(len(agents))])
		}
		fmt.Fprintln(w)
	}
}
