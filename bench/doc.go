// Package bench measures the paths that have budgets: see RESULTS.md for the
// figures and how they were made. Nothing else imports it.
package bench
