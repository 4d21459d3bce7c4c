package main

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/plugins/examples/internal/site"
	"github.com/jobhost/jobhost/plugins/internal/guesttest"
	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

const shop = "http://127.0.0.1:8183/shop/"

// crawl runs a crawl to its end, as a host does, and returns what was found, in
// order.
func crawl(t *testing.T, input string) (found []result) {
	t.Helper()
	s := &site.Site{}
	at := jobhost.Attempt{ID: "first", Input: []byte(input), HTTP: s.Answer}
	begun := jobhost.Run(scrape, at)
	if begun.Err != nil {
		t.Fatal(begun.Err)
	}
	keys := begun.Keys
	for waiting := begun.Deferred; len(waiting) > 0; waiting = waiting[1:] {
		next := waiting[0]
		if next.Entry != "page" || next.Header.Get("Accept") != "text/html" {
			t.Errorf("deferred %+v", next)
		}
		response, err := s.Answer(next.Request)
		reply := jobhost.Reply{ID: next.ID, Args: next.Args, Answer: jobhost.Answer{Response: response, Err: err}}
		got := jobhost.Run(scraped, jobhost.Attempt{ID: next.ID, Input: reply.Payload(), Keys: keys, HTTP: s.Answer})
		if got.Err != nil {
			t.Fatalf("%s: %v", next.URL, got.Err)
		}
		var r result
		if err := json.Unmarshal(got.Output, &r); err != nil {
			t.Fatal(err)
		}
		found, keys, waiting = append(found, r), got.Keys, append(waiting, got.Deferred...)
	}
	return found
}

func TestScrape(t *testing.T) {
	t.Parallel()
	home := result{
		URL: shop, Status: 200, Title: "Shop & more",
		Links: []string{shop + "books", shop + "maps", "http://127.0.0.1:8183/status/404", "https://elsewhere.example/"},
	}
	if diff := cmp.Diff([]result{home}, crawl(t, shop+"#top\n")); diff != "" {
		t.Error(diff)
	}
	deep := crawl(t, `{"url": "`+shop+`", "depth": 2}`)
	if home.Followed = 3; len(deep) != 7 {
		t.Fatalf("%+v", deep)
	}
	if diff := cmp.Diff(home, deep[0]); diff != "" {
		t.Error(diff)
	}
	var titles []string
	for _, r := range deep[1:] {
		titles = append(titles, r.Title)
	}
	// Each once, although several pages link to them.
	want := []string{"", "Books", "Books/atlas", "Books/poems", "Maps", "Maps/moon"}
	if slices.Sort(titles); !slices.Equal(titles, want) {
		t.Errorf("%q", titles)
	}
}

func TestBadTasks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		handler jobhost.Handler
		input   string
	}{
		{"empty", scrape, ""},
		{"no URL", scrape, "shop"},
		{"too deep", scrape, `{"url":"http://a/","depth":11}`},
		{"broken", scrape, `{"url":`},
		{"no reply", scraped, "http://a/"},
		{"a stranger's reply", scraped, "200\njobhost-request: r\n\n"},
		{"no response", scraped, string(jobhost.Reply{
			ID: "r", Args: []byte("{}"), Answer: jobhost.Answer{Err: &jobhost.ResponseError{Reason: jobhost.ReasonTimeout}},
		}.Payload())},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := jobhost.Run(tt.handler, jobhost.Attempt{Input: []byte(tt.input)})
			if f, ok := errors.AsType[*jobhost.Failure](got.Err); !ok || !f.Permanent {
				t.Errorf("%q, %v", got.Output, got.Err)
			}
		})
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, page, title string
		links             []string
	}{
		{"nothing", "", "", nil},
		{"no HTML", "a < b", "", nil},
		{"broken", `<title>half<a href="x`, "half", nil},
		{"kinds of links", `<a href=a><a href='b?c&amp;d'><a class="x>y" HREF = "/e#f"><a name=g><a href="#h"><a href="javascript:i()">`, "", []string{
			"http://site/d/a", "http://site/d/b?c&d", "http://site/e",
		}},
		{"twice", `<a href=a><a href="a#b">`, "", []string{"http://site/d/a"}},
		{"no links", `<!-- <a href=a> --><script>"<a href=b>"</SCRIPT><abbr href=c><style><a href=d></style><title> x
			y &lt; z</title>`, "x y < z", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			title, links := read(&url.URL{Scheme: "http", Host: "site", Path: "/d/"}, []byte(tt.page))
			if title != tt.title || !slices.Equal(links, tt.links) {
				t.Errorf("%q, %q", title, links)
			}
		})
	}
}

// TestGuest: the worker does the same in wasm.
func TestGuest(t *testing.T) {
	t.Parallel()
	g := guesttest.Start(t, guesttest.Build(t, "."))
	s := &site.Site{}
	run := func(entry, input string) *guesttest.Attempt {
		g.Attempt = &guesttest.Attempt{
			Input: []byte(input), Keys: map[string]string{}, Info: map[string]string{"job.id": "first"},
			HTTP: func(request string) guesttest.Reply { return guesttest.Reply{Text: s.AnswerText(request)} },
		}
		if err := g.Call(entry); err != nil || g.Attempt.Kind != 0 {
			t.Fatalf("%v, %s\n%s", err, g.Attempt.Failure, g.Stderr())
		}
		return g.Attempt
	}
	begun := run("jh_run", `{"url": "`+shop+`", "depth": 1}`)
	const args = `{"url":"` + shop + `","depth":1,"crawl":"first"}`
	if want := []string{"page " + args + " GET " + shop + "\naccept: text/html\n\n"}; !slices.Equal(begun.Ops.Deferred, want) {
		t.Fatalf("%q", begun.Ops.Deferred)
	}
	response, err := s.Answer(jobhost.Request{Method: "GET", URL: shop})
	reply := jobhost.Reply{ID: "r", Args: []byte(args), Answer: jobhost.Answer{Response: response, Err: err}}
	got := run("page", string(reply.Payload()))
	if !strings.Contains(string(got.Output), `"title":"Shop & more"`) || len(got.Ops.Deferred) != 3 || len(got.Keys) != 3 {
		t.Errorf("%s, %q", got.Output, got.Ops.Deferred)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`<title>a</title><a href="b"><a href=c d><!--`))
	f.Add([]byte("<a\xff href='x\xff'>"))
	f.Fuzz(func(t *testing.T, page []byte) {
		title, links := read(&url.URL{Scheme: "http", Host: "site", Path: "/"}, page)
		for _, link := range append(links, "http://site/") {
			if u, err := url.Parse(link); err != nil || u.Host == "" || u.Fragment != "" {
				t.Errorf("%q: %v", link, err)
			}
		}
		if len(title) > 4*len(page) || len(links) > maxLinks {
			t.Errorf("%q", title)
		}
	})
}
