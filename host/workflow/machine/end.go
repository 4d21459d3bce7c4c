package machine

import "github.com/jobhost/jobhost"

// end ends the workflow, with whatever still runs.
func (t *turn) end(p phase, e *End) {
	if t.rec.phase != underway {
		return
	}
	fresh := t.withdraw()
	for i, s := range t.rec.status {
		if s.ended() {
			continue
		}
		c := Change{Step: i, Status: stopped.told(), Run: t.rec.run(i), Reason: "the workflow has ended"}
		if !fresh[c.Run] {
			t.abandon(i)
			t.leave(i)
		}
		d := t.rec.detail(i)
		t.put(i, stopped, d.anew(own))
		if s != pending && s != ready {
			t.out.Changes = append(t.out.Changes, c)
		}
	}
	if whole := t.timeout(); t.c.graph.Timeout > 0 && !fresh[whole.Run] {
		t.unset(whole)
	}
	t.rec.phase = p
	e.Status = p.told()
	t.out.End = e
}

// withdraw takes back what was only asked for in this turn, and returns the runs
// that it was for.
func (t *turn) withdraw() map[Run]bool {
	if len(t.out.Submit)+len(t.out.Begin)+len(t.out.Set) == 0 {
		return nil
	}
	fresh := map[Run]bool{}
	for i := range t.out.Submit {
		fresh[t.out.Submit[i].Run] = true
	}
	for i := range t.out.Begin {
		fresh[t.out.Begin[i].Run] = true
	}
	for i := range t.out.Set {
		fresh[t.out.Set[i].Timer.Run] = true
	}
	t.out.Submit, t.out.Begin, t.out.Set = nil, nil, nil
	return fresh
}

// finish ends a workflow of which all steps have ended.
func (t *turn) finish() {
	output, err := t.output()
	if err != nil {
		t.end(broken, &End{Step: None, Failure: t.broken("output", err)})
		return
	}
	t.end(done, &End{Step: None, Output: output})
}

// output is what a workflow returns that nothing has terminated.
func (t *turn) output() (Payload, error) {
	g := t.c.graph
	switch {
	case g.HasOutput:
		return t.c.eval.Output(&View{t})
	case g.Output != None:
		return whole(t.source(g.Output)), nil
	case len(t.c.ends) == 1:
		return whole(t.source(t.c.ends[0])), nil
	}
	parts := make([]Part, len(t.c.ends))
	for k, i := range t.c.ends {
		parts[k] = Part{g.Steps[i].Name, t.source(i)}
	}
	return Payload{From: parts}, nil
}

// begin is the beginning of a workflow, the first or another.
func (t *turn) begin() {
	if t.c.graph.Timeout > 0 {
		t.set(t.timeout(), t.event.At.Add(t.c.graph.Timeout))
	}
}

func (t *turn) timeout() Timer {
	return Timer{Run{Step: None, Number: t.rec.begun}, Limit}
}

// refuse says why what was asked for comes to nothing.
func (t *turn) refuse(code jobhost.Code, field, message, hint string) bool {
	t.out.Refused = &jobhost.Error{Code: code, Field: field, Message: message, Hint: hint}
	return false
}
