;; plant changes a table, drops segments and grows the table; look returns
;; "clean" or "found" by whether it sees any of that.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "cleanfound")
  (data $passive "x")
  (table $t 2 10 funcref)
  (elem (i32.const 0) $one)
  (elem $more func $two)
  (func $one (result i32) (i32.const 1))
  (func $two (result i32) (i32.const 2))
  (func (export "plant") (param i32) (result i64)
    (table.set $t (i32.const 0) (ref.func $two))
    (drop (table.grow $t (ref.null func) (i32.const 3)))
    (data.drop $passive)
    (elem.drop $more)
    (i64.const 0))
  (func (export "look") (param i32) (result i64)
    (select
      (i64.const 5)                ;; "clean": 5 bytes at 0
      (i64.const 0x500000005)      ;; "found": 5 bytes at 5
      (i32.and
        (i32.eq (call_indirect $t (result i32) (i32.const 0)) (i32.const 1))
        (i32.eq (table.size $t) (i32.const 2)))))
  (func (export "jh_run") (param i32) (result i64) (i64.const 0)))
