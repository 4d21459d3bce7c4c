// Package site is a small web site for the examples that use HTTP, and for their
// tests: pages that are quick, slow, large or missing, shops that link to each
// other, and receivers of webhooks.
package site

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Site is the site. Its zero value is ready to serve, also concurrently, as an
// [http.Handler].
type Site struct {
	// Quick = answers that should take long don't.
	Quick bool

	mu       sync.Mutex
	received map[string][]Delivery // protected by mu
	down     bool                  // protected by mu
}

// SetDown makes /prices answer 503, or work again.
func (s *Site) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Delivery is a webhook that a receiver has accepted.
type Delivery struct{ Key, Body string }

// Received returns what a receiver has accepted, each key once.
func (s *Site) Received(receiver string) []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Delivery(nil), s.received[receiver]...)
}

// ServeHTTP serves
//
//	/status/N   an answer with that status
//	/slow/N     an answer after N milliseconds
//	/large/N    an answer of N bytes
//	/prices     a list, unless it is down: see [Site.SetDown]
//	/hook/NAME  a receiver: "flaky" is down for the first two deliveries, "gone"
//	            wants no more
//
// and below /shop pages of HTML.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	group, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	n, err := strconv.Atoi(rest)
	switch {
	case group == "shop":
		s.shop(w, rest)
	case group == "prices":
		s.prices(w)
	case group == "hook" && r.Method == http.MethodPost:
		s.hook(w, r, rest)
	case err != nil:
		http.NotFound(w, r)
	case group == "status" && n >= 200 && n <= 599:
		w.WriteHeader(n)
	case group == "slow":
		if !s.Quick {
			select {
			case <-time.After(time.Duration(n) * time.Millisecond):
			case <-r.Context().Done():
			}
		}
		_, _ = fmt.Fprintf(w, "that took %d ms\n", n)
	case group == "large" && n <= 1<<24:
		_, _ = io.WriteString(w, strings.Repeat("0123456789abcde\n", n/16)+"0123456789abcde\n"[:n%16])
	default:
		http.NotFound(w, r)
	}
}

func (s *Site) prices(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		http.Error(w, "the prices are being changed", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "item,price\natlas,48\npoems,12\nmoon,30\n")
}

// hook accepts a webhook. A repetition, recognized by its key, counts once.
func (s *Site) hook(w http.ResponseWriter, r *http.Request, name string) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		http.Error(w, "the body broke off", http.StatusBadRequest)
		return
	}
	if name == "gone" {
		http.Error(w, "unsubscribed", http.StatusGone)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.received == nil {
		s.received = map[string][]Delivery{}
	}
	if name == "flaky" && len(s.received["refused"]) < 2 {
		s.received["refused"] = append(s.received["refused"], Delivery{Key: r.Header.Get("Idempotency-Key")})
		http.Error(w, "try again later", http.StatusServiceUnavailable)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	for _, known := range s.received[name] {
		if known.Key == key {
			w.WriteHeader(http.StatusOK)
			return
		}
	}
	s.received[name] = append(s.received[name], Delivery{Key: key, Body: string(body)})
	w.WriteHeader(http.StatusAccepted)
}

// pages lists the links of each page of the shop.
var pages = map[string][]string{
	"":            {"books", "maps", "/status/404", "mailto:shop@example.com", "https://elsewhere.example/"},
	"books":       {"books/atlas", "books/poems", "./"},
	"maps":        {"maps/moon", "books/atlas", "#top"},
	"books/atlas": {"../maps/moon", "../"},
	"books/poems": nil,
	"maps/moon":   {"../books/atlas"},
}

func (s *Site) shop(w http.ResponseWriter, name string) {
	links, ok := pages[name]
	if !ok {
		http.Error(w, "<!doctype html><title>Not here</title>", http.StatusNotFound)
		return
	}
	title := "Shop & more"
	if name != "" {
		title = strings.ToUpper(name[:1]) + name[1:]
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(w, "<!doctype html>\n<html><head><title>\n  %s\n</title></head><body>\n", html.EscapeString(title))
	for _, link := range links {
		_, _ = fmt.Fprintf(w, "<p><A class=link HREF=\"%s\">%s</A></p>\n", html.EscapeString(link), html.EscapeString(link))
	}
	_, _ = io.WriteString(w, "<!-- <a href=\"hidden\">not a link</a> -->\n</body></html>\n")
}
