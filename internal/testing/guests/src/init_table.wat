;; _initialize changes a table; jh_run tells by its result whether it was, "1" or "2".
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "12")
  (table $t 1 1 funcref)
  (elem (i32.const 0) $one)
  (elem declare func $two)
  (func $one (result i64) (i64.const 0x000000001))
  (func $two (result i64) (i64.const 0x100000001))
  (func (export "_initialize") (table.set $t (i32.const 0) (ref.func $two)))
  (func (export "jh_run") (param i32) (result i64)
    (call_indirect $t (result i64) (i32.const 0))))
