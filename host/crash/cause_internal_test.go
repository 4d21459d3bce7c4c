package crash

import "testing"

func TestCause(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"panic", "panic: boom\x1b[31m\n\ngoroutine 1 [running]:\nmain.main()\n", `panic: boom\x1b[31m`},
		{
			"signal", "SIGSEGV: segmentation violation\nPC=0x41 m=0 sigcode=1 addr=0x4141\n\ngoroutine 7 gp=0x1 m=0 [syscall]:\n",
			"SIGSEGV: segmentation violation\nPC=0x41 m=0 sigcode=1 addr=0x4141",
		},
		{
			"stack", "\nruntime stack:\nruntime.throw({0x4adfb4?, 0x2?})\n\t/go/panic.go:1229 +0x48\nruntime.newstack()\n\t/go/stack.go:1207\n" +
				"\ngoroutine 1 gp=0x3 m=0 [running]:\nmain.deeper(0xf?)\n\t/x/main.go:3\nmain.deeper(...)\n\t/x/main.go:3\ncreated by main.main\n" +
				"\ngoroutine 2 [running]:\nmain.other()\n",
			"fatal error: stack overflow, in runtime.newstack, main.deeper",
		},
		{
			"memory", "\ngoroutine 1 gp=0x3 m=0 [running]:\nruntime.throw({0x4, 0x2})\n\t/go/panic.go:1229\nruntime.(*mcache).allocLarge(0x4, 0x1)\n\t/go/mcache.go\nmain.oom(...)\n",
			"fatal error: out of memory, in runtime.(*mcache).allocLarge, main.oom",
		},
		{"map", "\ngoroutine 21 [running]:\ninternal/runtime/maps.fatal({0x4, 0x0})\n\t/go/panic.go\nmain.w()\n", "fatal error: concurrent use of a map, in internal/runtime/maps.fatal, main.w"},
		{"nothing", "goroutine 1 [running]:\n", "Go has ended the process; the file says more"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := causeIn([]byte(test.text)); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
