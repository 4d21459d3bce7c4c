package api

import (
	"fmt"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

// newMux returns a mux of the table: a handler for each path, which knows the
// methods, so that wrong ones get a problem too.
func (a *API) newMux(table []route) *http.ServeMux {
	mux, paths := http.NewServeMux(), map[string]*methods{}
	for i := range table {
		r := &table[i]
		m := paths[r.path]
		if m == nil {
			m = &methods{api: a, path: r.path}
			paths[r.path] = m
			// A key is the rest of the path, since it may be a slash.
			mux.Handle(strings.Replace(r.path, "{key}", "{key...}", 1), m)
		}
		m.routes = append(m.routes, r)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { a.fail(w, r, errNoPath) })
	return mux
}

var errNoPath = &jobhost.Error{
	Code:    jobhost.CodeNotFound,
	Message: "there is nothing at this path",
	Hint:    "/openapi.json lists what there is",
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := &response{ResponseWriter: rw}
	begun := time.Now()
	defer w.lease.release()
	defer func() {
		if cause := recover(); cause != nil {
			a.recovered(w, r, cause)
		}
		if a.cfg.Observe != nil {
			a.cfg.Observe(w.route, w.status, time.Since(begun))
		}
	}()
	secure(w.Header())
	// A path that is not in its shortest form has no route: the mux would redirect it.
	// Escaped, as the mux sees it: a key may hold slashes and dots.
	if p := r.URL.EscapedPath(); p != path.Clean(p) {
		a.fail(w, r, errNoPath)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// recovered answers a request whose handler panicked. One that had begun to
// answer is cut off, since the client must not take half of it for all.
func (a *API) recovered(w *response, r *http.Request, cause any) {
	if cause == http.ErrAbortHandler {
		panic(cause) //nolint:forbidigo // net/http asks for it: the connection is cut
	}
	err := fmt.Errorf("handler panicked: %v\n%s", cause, debug.Stack())
	if w.status != 0 {
		a.log.Error("answer broke off", "path", w.route, "error", err)
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http asks for it: the connection is cut
	}
	a.fail(w, r, err)
}

// response remembers what was answered.
// It is also what is known of the call.
type response struct {
	http.ResponseWriter
	route  string
	status int

	quota *quota
	lease lease
	conn  *limitedConn // nil = it is not known
}

// Unwrap is how [http.ResponseController] reaches the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// methods are the routes of one path.
type methods struct {
	api    *API
	path   string
	routes []*route
}

// ServeHTTP serves the route of the request's method.
func (m *methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if w, ok := w.(*response); ok {
		w.route = m.path
	}
	route := m.route(r.Method)
	if route == nil {
		m.api.fail(w, r, m.noMethod(w))
		return
	}
	m.api.recognize(w, r, route)
	err := m.api.authorize(w, r, route)
	if err == nil && route.needsServer() {
		err = m.api.connect()
	}
	if err == nil && needsRoom(route) {
		err = m.api.reserve(w, r, pageRoom)
	}
	if err == nil {
		err = route.serve(w, r)
	}
	if err != nil {
		m.api.fail(w, r, err)
	}
}

// route returns that of a method; nil = there is none.
func (m *methods) route(method string) *route {
	i := slices.IndexFunc(m.routes, func(route *route) bool {
		return route.method == method || route.method == "GET" && method == "HEAD"
	})
	if i < 0 {
		return nil
	}
	return m.routes[i]
}

func (m *methods) noMethod(w http.ResponseWriter) error {
	var allowed []string
	for _, r := range m.routes {
		allowed = append(allowed, r.method)
	}
	list := strings.Join(allowed, ", ")
	w.Header().Set("Allow", list)
	return refuse(http.StatusMethodNotAllowed, &jobhost.Error{
		Code:    jobhost.CodeInvalid,
		Message: "there is no such method for " + m.path,
		Hint:    "use " + list,
	})
}
