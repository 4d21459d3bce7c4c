;; An Extism plugin that makes its kernel clear megabytes, for ever.
(module
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "free" (func $free (param i64)))
  (import "extism:host/env" "reset" (func $reset))
  (memory (export "memory") 1)
  (func (export "reset") (result i32)
    (loop (drop (call $alloc (i64.const 0x800000))) (call $reset) (br 0)) (unreachable))
  (func (export "reuse") (result i32)
    (local $p i64)
    (loop
      (local.set $p (call $alloc (i64.const 0x800000)))
      (call $free (local.get $p))
      (br 0))
    (unreachable)))
