package scope_test

import (
	"context"
	"testing"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

// BenchmarkRun is what a task attempt costs: a child with a body, joined and
// forgotten.
func BenchmarkRun(b *testing.B) {
	root := scope.New(b.Context(), "root")
	body := func(context.Context, *scope.Scope) (int, error) { return 1, nil }
	b.ReportAllocs()
	for b.Loop() {
		scope.Run(root, "task", body, scope.Forget())
	}
	_, _ = root.Join(context.Background())
}

// BenchmarkRunParallel does so from all processors, below one parent.
func BenchmarkRunParallel(b *testing.B) {
	root := scope.New(b.Context(), "root")
	body := func(context.Context, *scope.Scope) (int, error) { return 1, nil }
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			scope.Run(root, "task", body, scope.Forget())
		}
	})
	_, _ = root.Join(context.Background())
}

// BenchmarkRunFinaliser adds a finaliser and a look at the context's channel.
func BenchmarkRunFinaliser(b *testing.B) {
	root := scope.New(b.Context(), "root")
	release := func(bool, scope.Status, error) error { return nil }
	body := func(ctx context.Context, s *scope.Scope) (int, error) {
		_ = ctx.Done()
		return 1, s.Finally(release)
	}
	b.ReportAllocs()
	for b.Loop() {
		scope.Run(root, "task", body, scope.Forget())
	}
	_, _ = root.Join(context.Background())
}

func BenchmarkChildJoin(b *testing.B) {
	root := scope.New(b.Context(), "root")
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		child, _ := root.Child("task", scope.Forget())
		_, _ = child.Join(ctx)
	}
	_, _ = root.Join(context.Background())
}

// BenchmarkRunGo has one goroutine besides the body.
func BenchmarkRunGo(b *testing.B) {
	root := scope.New(b.Context(), "root")
	nothing := func(context.Context) error { return nil }
	body := func(_ context.Context, s *scope.Scope) (int, error) { return 1, s.Go("x", nothing) }
	b.ReportAllocs()
	for b.Loop() {
		scope.Run(root, "task", body, scope.Forget())
	}
	_, _ = root.Join(context.Background())
}

func BenchmarkRunOp(b *testing.B) {
	root := scope.New(b.Context(), "root")
	body := func(context.Context, *scope.Scope) (int, error) { return 1, nil }
	o := scope.RunOp(root, "task", body, scope.Forget())
	b.ReportAllocs()
	for b.Loop() {
		_, _ = op.PerformRaw(o)
	}
	_, _ = root.Join(context.Background())
}

func BenchmarkPerform(b *testing.B) {
	root := scope.New(b.Context(), "root")
	ctx, o := root.Context(), op.Always(1)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = scope.Perform(ctx, o)
	}
	_, _ = root.Join(context.Background())
}
