;; A plugin with the exports of those that Extism's kit for JavaScript makes: the
;; author's own function, and one that the shim of the kit calls before it passes
;; arguments, which nobody else may call. The author's gives the input back.
(module
  (import "extism:host/env" "input_offset" (func $input_offset (result i64)))
  (import "extism:host/env" "input_length" (func $input_length (result i64)))
  (import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
  (memory (export "memory") 1)
  (func (export "__arg_start") unreachable)
  (func (export "reverse") (result i32)
    (call $output_set (call $input_offset) (call $input_length))
    (i32.const 0)))
