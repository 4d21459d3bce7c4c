// Package test has tests of the whole system: real processes, killed for real,
// watched from outside.
package test
