// Package outside is a program of someone else: a module of its own that uses ops,
// scopes, hubs, fibers and states of jobhost, and so nothing internal. Its examples
// are the code of docs/ops.md, which a test compares.
package outside
