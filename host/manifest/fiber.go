package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
	"github.com/jobhost/jobhost/runtime"
)

// Fibers is the section [fibers]: the bounds of all fibers of the host.
type Fibers struct {
	// Max is how many live at one time.
	Max int
	// WhenFull says what becomes of a start over Max.
	WhenFull WhenFull
	// Input and InputBytes bound what waits for one fiber.
	Input, InputBytes int
	// Replay is how many outputs of a fiber are remembered; 0 = none.
	Replay int
	// History is how many ended fibers can still be read.
	History int
}

// WhenFull says what becomes of the start of a fiber when as many live as may.
type WhenFull string

// What becomes of it.
const (
	WaitWhenFull WhenFull = "wait" // it waits for its turn
	FailWhenFull WhenFull = "fail" // it is answered exhausted
)

// Fiber is a section [[fiber]]: one that starts with the host.
type Fiber struct {
	ID     string
	Worker string
	Entry  string
	Init   string
	// InitFile is the path of a file with what Init says otherwise, absolute;
	// empty = it is Init. Read it with [Manifest.ReadInit].
	InitFile string
	Labels   map[string]string
	Restart  jobhost.RestartPolicy
}

func defaultFibers() Fibers {
	return Fibers{Max: fiber.DefaultMax, WhenFull: WaitWhenFull, Input: 64, InputBytes: 4 << 20, Replay: 64, History: 1000}
}

func defaultFiber() Fiber {
	return Fiber{Labels: map[string]string{}, Restart: jobhost.RestartPolicy{}.OrDefaults()}
}

// ReadInit returns what a fiber begins with, from its file if it has one.
func (m *Manifest) ReadInit(f *Fiber) ([]byte, error) {
	if f.InitFile == "" {
		return []byte(f.Init), nil
	}
	data, err := readFile(m.Dir, f.InitFile, jobhost.MaxFiberMessage)
	if err != nil {
		return nil, fmt.Errorf("read init: %w", err)
	}
	return data, nil
}

// fibers reads the sections [fibers] and [[fiber]].
func (r *reader) fibers(doc map[string]any, m *Manifest) {
	m.Fibers = defaultFibers()
	if table, ok := r.table(doc, nil, "fibers"); ok {
		fill(r, []string{"fibers"}, table, fibersFields(), &m.Fibers)
	}
	v, given := doc["fiber"]
	if !given {
		return
	}
	tables, ok := v.([]map[string]any)
	path := []string{"fiber"}
	switch {
	case !ok:
		r.faultKey(path, path, "this is not a list of fibers", "each fiber is a section of its own: [[fiber]]")
		return
	case len(tables) > MaxFibers:
		r.faultKey(path, nil, fmt.Sprintf("%d fibers are more than %d", len(tables), MaxFibers), "")
		return
	case len(tables) > m.Fibers.Max:
		r.faultKey(path, path, fmt.Sprintf("%d fibers start with the host, and %d may live at one time", len(tables), m.Fibers.Max), "raise fibers.max")
	}
	ids := r.uniqueNames("fiber", "id", tables, jobhost.CheckFiber)
	for i, table := range tables {
		id := element(i + 1)
		if ids[i] != "" {
			id = ids[i]
		}
		m.FiberList = append(m.FiberList, r.fiber([]string{"fiber", id}, table, m))
	}
	slices.SortFunc(m.FiberList, func(a, b Fiber) int { return strings.Compare(a.ID, b.ID) })
}

func (r *reader) fiber(path []string, table map[string]any, m *Manifest) Fiber {
	f := defaultFiber()
	before := len(r.faults)
	fill(r, path, table, fiberFields(), &f, "labels", "restart")
	if labels, ok := r.table(table, path, "labels"); ok {
		f.Labels = r.labels(at(path, "labels"), labels, jobhost.MaxLabels)
	}
	if policy, ok := r.table(table, path, "restart"); ok {
		r.restart(at(path, "restart"), policy, &f.Restart)
	}
	if len(r.faults) > before {
		return f // faults that follow from it would be reported too
	}
	if r.knownWorker(path, f.Worker, m) {
		r.checkFiberABI(path, &f, m)
	}
	r.init(path, table, &f)
	return f
}

// restart reads [fiber.restart].
func (r *reader) restart(path []string, table map[string]any, p *jobhost.RestartPolicy) {
	before := len(r.faults)
	policy := jobhost.RestartPolicy{} // so that a long first delay makes a long one of the longest
	fill(r, path, table, restartFields(), &policy)
	if policy = policy.OrDefaults(); len(r.faults) == before && policy.Max < policy.Initial {
		r.faultValue(at(path, "max"), wrong("", "%v is less than initial, which is %v", policy.Max, policy.Initial))
	}
	*p = policy
}

// checkFiberABI refuses workers that say that they can't be fibers. Of the others
// it shows when they are loaded.
func (r *reader) checkFiberABI(path []string, f *Fiber, m *Manifest) {
	i := slices.IndexFunc(m.Workers, func(w Worker) bool { return w.Name == f.Worker })
	if abi := m.Workers[i].ABI; abi != runtime.ABIAuto && abi != runtime.ABIJobhost {
		r.faultValue(at(path, "worker"), wrong("use a worker of the native ABI", "worker %s has the ABI %s, which has no fibers", f.Worker, abi))
	}
}

// init sees that it is said once what a fiber begins with, and that it isn't too much.
func (r *reader) init(path []string, table map[string]any, f *Fiber) {
	if f.InitFile == "" {
		if len(f.Init) > jobhost.MaxFiberMessage {
			r.faultValue(at(path, "init"), wrong("", "text of %d bytes is longer than %v", len(f.Init), Size(jobhost.MaxFiberMessage)))
		}
		return
	}
	if _, both := table["init"]; both {
		r.faultValue(at(path, "init_file"), wrong("leave one of them out", "init and init_file are both set"))
	} else if err := checkFile(r.dir, f.InitFile, jobhost.MaxFiberMessage); err != nil {
		r.faultValue(at(path, "init_file"), err)
	}
}

func (m *Manifest) showFibers(b *strings.Builder) {
	b.WriteString("\n[fibers]\n")
	showFields(b, m.Dir, fibersFields(), &m.Fibers)
	for i := range m.FiberList {
		f := &m.FiberList[i]
		b.WriteString("\n[[fiber]]\n")
		showFields(b, m.Dir, fiberFields(), f)
		showLabels(b, "fiber", f.Labels)
		b.WriteString("\n[fiber.restart]\n")
		showFields(b, m.Dir, restartFields(), &f.Restart)
	}
}
