package pgqueue

import (
	"cmp"
	"slices"

	"github.com/jobhost/jobhost/internal/pgdb"
)

// candidates are the jobs of a worker with dead tasks, by key, as far as they were read. Jobs with a task that died in this
// commit are among them, but not those that it has evicted.
type candidates struct {
	worker int64
	list   []*victim
	from   int64 // where the next piece begins
	next   int64 // how many jobs it has
	whole  bool  // there are no more pieces
}

// The jobs are read in pieces of growing size.
const (
	firstPiece  = evictLooks
	pieceGrowth = 4
)

// candidatesOf returns the jobs of a worker from its cursor on, the job of the last death included.
func (r *evictRows) candidatesOf(im *image, worker int64) *candidates {
	l := r.candidates[worker]
	if l == nil {
		l = &candidates{worker: worker, from: r.cursors[worker], next: firstPiece}
		r.candidates[worker] = l
		return l
	}
	if n := len(im.letters.letters); n > 0 {
		if last := &im.letters.letters[n-1]; l.whole || last.job < l.from {
			l.add(&victim{Key: last.job, Tasks: last.tasks, unread: true})
		}
	}
	return l
}

// first returns the index of the first job whose key is at least key.
func (l *candidates) first(key int64) int {
	i, _ := l.find(key)
	return i
}

func (l *candidates) find(key int64) (i int, found bool) {
	return slices.BinarySearchFunc(l.list, key, func(v *victim, key int64) int { return cmp.Compare(v.Key, key) })
}

// add adds a job, unless it is there.
func (l *candidates) add(v *victim) {
	if i, found := l.find(v.Key); !found {
		l.list = slices.Insert(l.list, i, v)
	}
}

func (l *candidates) remove(i int) { l.list = slices.Delete(l.list, i, i+1) }

// victim returns a job by its index; nil = there is none, or if more is set, it is being read.
func (l *candidates) victim(tx *pgdb.Tx, im *image, i int) (v *victim, more bool) {
	for i >= len(l.list) {
		if l.whole {
			return nil, false
		}
		if !l.read(tx, im) {
			return nil, true
		}
	}
	if v = l.list[i]; v.unread {
		l.know(tx, im, v)
	}
	return v, true
}

// read adds the next piece; false = it has to be read first.
func (l *candidates) read(tx *pgdb.Tx, im *image) bool {
	piece := im.evictions.lists.Get(tx, listKey{l.worker, l.from, l.next})
	if piece == nil {
		return false
	}
	from := l.from
	for i := range *piece {
		v := (*piece)[i]
		l.list = append(l.list, &v)
		l.from = v.end()
	}
	l.whole = int64(len(*piece)) < l.next
	l.next *= pieceGrowth
	for i := range im.letters.letters {
		if d := &im.letters.letters[i]; d.worker == l.worker && d.job >= from && (l.whole || d.job < l.from) {
			l.add(&victim{Key: d.job, Tasks: d.tasks, unread: true})
		}
	}
	return true
}

// know reads a job of which only the key is known, and all other such jobs, which are likely to be next.
func (l *candidates) know(tx *pgdb.Tx, im *image, v *victim) {
	single := &im.evictions.single
	var keys []int64
	for _, other := range l.list {
		if other.unread {
			keys = append(keys, other.Key)
		}
	}
	single.Want(tx, keys)
	row := single.Get(tx, v.Key)
	switch {
	case row != nil:
		*v = *row
	case !tx.Missed():
		v.unread, v.unflushed = false, true
	}
}
