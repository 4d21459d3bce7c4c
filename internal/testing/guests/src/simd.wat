;; Returns its input of up to 64 KiB with the letters a to z made capitals, 16 at
;; a time: a worker that needs vectors.
(module
  (memory (export "memory") 2)
  (global $bit v128 (v128.const i8x16 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32))
  (func (export "jh_buf") (param $min i32) (result i32)
    (select (i32.const 0x8000) (i32.const 0) (i32.le_u (local.get $min) (i32.const 0x10000))))
  (func $capitals (param $text v128) (result v128)
    (local $letters v128)
    (local.set $letters (v128.and
      (i8x16.ge_u (local.get $text) (i8x16.splat (i32.const 97)))
      (i8x16.le_u (local.get $text) (i8x16.splat (i32.const 122)))))
    (v128.xor (local.get $text) (v128.and (local.get $letters) (global.get $bit))))
  (func (export "jh_run") (param $len i32) (result i64)
    (local $at i32)
    (loop $next
      (if (i32.lt_u (local.get $at) (local.get $len))
        (then
          (v128.store offset=0x8000 (local.get $at) (call $capitals (v128.load offset=0x8000 (local.get $at))))
          (local.set $at (i32.add (local.get $at) (i32.const 16)))
          (br $next))))
    (i64.or (i64.shl (i64.const 0x8000) (i64.const 32)) (i64.extend_i32_u (local.get $len)))))
