// Package op has values that describe operations that may block.
//
// An [Op] is to waiting what a function value is to calling: it can be stored, passed on, wrapped
// and combined with others before anything waits. It does nothing until it is performed. [Perform]
// waits, [TryPerform] does not, and each performing starts afresh, so one Op may be performed many
// times and by many goroutines at once.
//
//	reply := op.Choice(
//		op.Wrap(answers.Recv(), decode),
//		op.Wrap(op.After(time.Second), func(time.Time) (Reply, error) { return Reply{}, errSlow }),
//	)
//	r, err := op.Perform(ctx, reply)
//
// # What happens in a performing
//
//  1. Build: each [Guard], [WithNack] and [Bracket] runs its function, once.
//  2. Probe: every arm (a primitive op somewhere in the tree) is asked whether it
//     is ready, from a random start and in a random direction. The first that is
//     commits.
//  3. Wait: if none was ready, all arms register what they wait for, and the first
//     that comes true commits. The end of the context can win here as well.
//  4. Withdraw: the other arms' registrations are taken back. Nothing stays behind
//     in a wait list, and no timer or goroutine either.
//  5. Abort: the abort conditions ([OnAbort], [WithNack], [Bracket] as loss) that do
//     not cover the winning arm fire, each once, inner before outer.
//  6. Wrap: the wraps of the winning arm run, inner before outer.
//
// Exactly one arm commits, or none if the context ended or TryPerform found nothing. All user
// functions run in the performing goroutine without any locks held: they may perform ops
// themselves. A panic in one of them propagates after steps 4 and 5 have been completed.
//
// # Errors
//
// The result of an Op[T] is a T and an error, and an error is a result like any other: an arm that
// fails has won. So in a [Choice] a closed channel beats a timer that is still running. [Wrap]
// passes errors through, [WrapResult] sees them. Perform adds one error of its own, the cause of
// its context's end.
//
// # Writing a primitive
//
// Everything but [Chan] and [Mailbox] is written with [New], and so should be anything else to
// wait for: input of a queue, the answer to a request, the exit of a process, a change of state. A
// primitive is two functions: try commits if it can do so now, and block registers a [Waiter]
// where the code that makes the condition true finds it. Usually that is a [WaitList] next to the
// data and under the same mutex, and [Waiter.Complete] is called with that mutex held:
//
//	func (q *Queue) Take() op.Op[Item] {
//		return op.New(
//			func() (Item, bool, error) {
//				q.mu.Lock()
//				defer q.mu.Unlock()
//				return q.popLocked()
//			},
//			func(w *op.Waiter[Item]) {
//				q.mu.Lock()
//				defer q.mu.Unlock()
//				if item, ok, err := q.peekLocked(); ok { // it came since try
//					if w.Complete(item, err) {
//						q.dropLocked()
//					}
//					return
//				}
//				q.waiters.Wait(w, &q.mu)
//			})
//	}
//
// and Put hands over with q.waiters.Complete(item, nil), which reports whether a waiter took it.
// Three rules: check again in block, under the lock, since things may have changed after try; hand
// a thing over only if Complete reports true; never block in any of it.
//
// # Finished primitives
//
//   - [Chan]: a rendezvous, or a buffer, between two choices.
//   - [Mailbox]: a bounded queue that blocks, rejects or drops the oldest when full.
//   - [Future], [Signal]: a result that is set, or a condition that becomes true, once.
//   - [Pulse]: something has changed; look again.
//   - [Semaphore], [WaitGroup]: permits, and the end of all operations in progress.
//   - [After], [At], [Done], [Closed], [Inlet]: time, contexts and native channels.
//
// Scopes ([github.com/jobhost/jobhost/host/scope]), streams of bytes
// ([github.com/jobhost/jobhost/host/stream]), child processes
// ([github.com/jobhost/jobhost/host/exec]) and other things a host waits for
// ([github.com/jobhost/jobhost/host/await]) are ops too.
//
// # Goroutines
//
// Performing starts no goroutine, with one exception: a native Go channel can't notify a waiter
// that it is ready, so [Inlet] and [Closed] have a goroutine receive from it while they wait. A
// losing arm waits for its goroutine to end, a winning one was woken by it.
package op
