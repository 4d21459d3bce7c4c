;; Entries that call the host for ever, each call being as dear as it gets.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "jobhost1" "log" (func $log (param i32 i32 i32)))
  (import "jobhost1" "fail" (func $fail (param i32 i32 i32) (result i32)))
  (memory (export "memory") 160)
  (func (export "random") (param i32) (result i64)
    (loop (drop (call $random (i32.const 0) (i32.const 0x100000))) (br 0)) (unreachable))
  ;; A subscription of zeros is a clock that has come; the events are far away.
  (func (export "poll") (param i32) (result i64)
    (loop (drop (call $poll (i32.const 0) (i32.const 0x80000) (i32.const 4096) (i32.const 0x7fff0))) (br 0)) (unreachable))
  (func (export "log") (param i32) (result i64)
    (memory.fill (i32.const 0) (i32.const 10) (i32.const 0xa00000))
    (loop (call $log (i32.const 0) (i32.const 0) (i32.const 0xa00000)) (br 0)) (unreachable))
  (func (export "fail") (param i32) (result i64)
    (memory.fill (i32.const 0) (i32.const 91) (i32.const 0x10000))
    (i32.store (i32.const 0) (i32.const 0x3a22617b)) ;; {"a:
    (loop (drop (call $fail (i32.const 1) (i32.const 0) (i32.const 0x10000))) (br 0)) (unreachable))
  (func (export "jh_run") (param i32) (result i64) (i64.const 0)))
