// Package scope has supervision domains: every goroutine of the host belongs to a
// [Scope], and a scope ends only after everything in it has ended.
//
// Scopes form a tree, from the host down to a single request. A scope owns
// goroutines ([Scope.Go]), child scopes ([Scope.Child], [Run], [RunOp]) and
// finalisers ([Scope.Finally], [Scope.Attach]). Its changes of state can be waited
// for: [Scope.CloseOp], [Scope.FaultOp], [Scope.CancelOp], [Scope.JoinOp].
//
// # The rules
//
//   - Admission: after [Scope.Close], cancellation, failure or the beginning of the
//     join, a scope admits nothing new. What it contains continues, unless it is
//     cancelled.
//   - Cancellation goes down, to all children and their children. In each scope the
//     first reason counts.
//   - A scope fails fast: the first error that isn't a cancellation is its primary
//     error, and cancels the scope. Errors after that are extra errors.
//   - Nothing goes up. A parent gets a child's outcome from the result of the
//     boundary, [Run] or [Scope.Join], and decides what it means.
//   - Join is deterministic: close admission, wait for own goroutines, join the
//     children in order of attachment, run the finalisers in reverse order. Only
//     then is the outcome known. Cancelling a scope makes its join shorter, but
//     skips none of these steps.
//
// # Outcomes
//
// The status is running until the join is complete, or until something worse has
// happened:
//
//	running ──cancel──► cancelled ──error──► failed
//	   │  └────────────────error────────────────┘
//	   └──join──► ok
//
// An error counts as a cancellation if it is or wraps a [*Cancelled], or if it is
// [context.Canceled] and the scope has been cancelled. A cancellation that escapes
// from a goroutine while its scope is still running cancels the scope, with the
// same reason. An error that wraps both cancellations and other errors counts as
// cancellation and is also an extra error, so that it isn't lost. A panic is always
// a failure, as a [*PanicError], and ends neither the process nor other scopes.
//
// # Goroutines
//
// This is the one package that starts goroutines for others with a bare go
// statement, so that all of them have an owner. It starts some of its own: for a
// boundary run as an op, and for a join that its caller may stop waiting for. The
// latter belongs to the scope being joined; both end with it.
package scope
