// The parts of the glue that are the same in every worker, as WebAssembly text.

/** cfunction is the type of a function that QuickJS calls. */
export const cfunction = "(param $ctx i32) (param $this i64) (param $argc i32) (param $argv i32) (result i64)";

// The next message of a handle, or all of it, or the errno. With room 0 the
// host tells how much there is; a message that is empty is gone after a read with room.
export const reading = `(func $op_read ${cfunction} (local $h i32) (local $n i32) (local $m i32) (local $got i32)
  (local.set $h (call $int (i64.load (local.get $argv))))
  (local.set $n (call $jh_read (local.get $h) (i32.const 0) (i32.const 0)))
  (if (i32.gt_s (local.get $n) (global.get $cap)) (then (call $room (local.get $n))))
  (block $done (loop $more
    (br_if $done (i32.lt_s (local.get $n) (i32.const 0)))
    (local.set $m (call $jh_read (local.get $h) (i32.add (global.get $buf) (local.get $got))
      (select (i32.sub (local.get $n) (local.get $got)) (i32.const 1) (local.get $n))))
    (if (i32.lt_s (local.get $m) (i32.const 0)) (then (local.set $n (local.get $m)) (br $done)))
    (local.set $got (i32.add (local.get $got) (local.get $m)))
    (br_if $more (i32.and (i32.gt_s (local.get $m) (i32.const 0)) (i32.lt_s (local.get $got) (local.get $n))))))
  (if (i32.lt_s (local.get $n) (i32.const 0)) (then (return (call $number (local.get $n)))))
  (call $JS_NewUint8ArrayCopy (local.get $ctx) (global.get $buf) (local.get $got)))`;

/** waits is what the log says of a worker whose top level doesn't end. */
export const waits = "the worker waits at its top level for what never comes";

/** runtime has the exports of the ABI. place returns where a string is, as an expression. */
export const runtime = (place) => `
(global $rt (mut i32) (i32.const 0))
(global $ctx (mut i32) (i32.const 0))
(global $strings (mut i32) (i32.const 0))
(global $tmp (mut i32) (i32.const 0))   ;; 64 bytes: what functions return by pointer, at 16 and 40 arguments
(global $buf (mut i32) (i32.const 0))   ;; answers of the host
(global $cap (mut i32) (i32.const 0))
(global $box (mut i32) (i32.const 0))   ;; the mailbox
(global $boxcap (mut i32) (i32.const 0))
(global $len (mut i32) (i32.const 0))   ;; of what $bytes returned
(global $own (mut i32) (i32.const 0))   ;; what is to be released after it
(global $result (mut i64) (i64.const ${3n << 32n})) ;; the output, alive until the next call
(global $resulttext (mut i32) (i32.const 0))
(global $run (mut i64) (i64.const 0))
(global $step (mut i64) (i64.const 0))
(global $rejected (mut i64) (i64.const 0))
(global $woken (mut i32) (i32.const 0))
(global $seeded (mut i32) (i32.const 0)) ;; and the state of Math.random
(global $s0 (mut i64) (i64.const 0))
(global $s1 (mut i64) (i64.const 0))
;; Values are 64 bits with the tag in the upper half: 0 is an integer, 1 a boolean, -1 an object.
(global $TRUE i64 (i64.const ${(1n << 32n) | 1n}))
(global $UNDEFINED i64 (i64.const ${3n << 32n}))
(global $EXCEPTION i64 (i64.const ${6n << 32n}))

(func $broken (param $v i64) (result i32)
  (i64.eq (i64.and (local.get $v) (i64.const -4294967296)) (global.get $EXCEPTION)))
(func $need (param $n i32) (result i32) (local $p i32)
  (if (i32.eqz (local.tee $p (call $malloc (local.get $n)))) (then (unreachable)))
  (local.get $p))
(func $room (param $n i32)
  (call $free (global.get $buf))
  (global.set $buf (call $need (local.get $n)))
  (global.set $cap (local.get $n)))
(func $number (param $n i32) (result i64) (i64.extend_i32_u (local.get $n)))
(func $fromlong (param $n i64) (result i64)
  (if (i64.le_u (i64.add (local.get $n) (i64.const ${2n ** 53n})) (i64.const ${2n ** 54n}))
    (then (return (call $JS_NewNumber (global.get $ctx) (f64.convert_i64_s (local.get $n))))))
  (call $JS_NewBigInt64 (global.get $ctx) (local.get $n)))
(func $int (param $v i64) (result i32)
  (drop (call $JS_ToInt32 (global.get $ctx) (i32.add (global.get $tmp) (i32.const 8)) (local.get $v)))
  (i32.load offset=8 (global.get $tmp)))
(func $long (param $v i64) (result i64)
  (drop (call $JS_ToInt64Ext (global.get $ctx) (i32.add (global.get $tmp) (i32.const 8)) (local.get $v)))
  (i64.load offset=8 (global.get $tmp)))
(func $double (param $v i64) (result f64)
  (drop (call $JS_ToFloat64 (global.get $ctx) (i32.add (global.get $tmp) (i32.const 8)) (local.get $v)))
  (f64.load offset=8 (global.get $tmp)))
;; Where the bytes of a Uint8Array are, or of a string as UTF-8; -1 if it threw.
(func $bytes (param $v i64) (result i32) (local $p i32)
  (global.set $own (i32.const 0))
  (if (i64.ge_u (local.get $v) (i64.const -4294967296))
    (then
      (local.set $p (call $JS_GetUint8Array (global.get $ctx) (global.get $tmp) (local.get $v)))
      (global.set $len (i32.load (global.get $tmp)))
      (if (i32.and (i32.eqz (local.get $p)) (i32.ne (global.get $len) (i32.const 0))) (then (return (i32.const -1))))
      (return (local.get $p))))
  (if (i32.eqz (local.tee $p (call $JS_ToCStringLen2 (global.get $ctx) (global.get $tmp) (local.get $v) (i32.const 0))))
    (then (return (i32.const -1))))
  (global.set $len (i32.load (global.get $tmp)))
  (global.set $own (local.get $p))
  (local.get $p))
(func $release (param $p i32)
  (if (local.get $p) (then (call $JS_FreeCString (global.get $ctx) (local.get $p)))))

(func $op_decode ${cfunction} (local $p i32) (local $from i32)
  (local.set $p (call $bytes (i64.load (local.get $argv))))
  (if (i32.eq (local.get $p) (i32.const -1)) (then (return (global.get $EXCEPTION))))
  (local.set $from (call $int (i64.load offset=8 (local.get $argv))))
  (call $JS_NewStringLen (local.get $ctx) (i32.add (local.get $p) (local.get $from))
    (i32.sub (call $int (i64.load offset=16 (local.get $argv))) (local.get $from))))
(func $op_encode ${cfunction} (local $p i32) (local $v i64)
  (local.set $p (call $bytes (i64.load (local.get $argv))))
  (if (i32.eq (local.get $p) (i32.const -1)) (then (return (global.get $EXCEPTION))))
  (local.set $v (call $JS_NewUint8ArrayCopy (local.get $ctx) (local.get $p) (global.get $len)))
  (call $release (global.get $own))
  (local.get $v))
(func $op_input_text ${cfunction}
  (call $JS_NewStringLen (local.get $ctx) (global.get $box) (call $int (i64.load (local.get $argv)))))
(func $op_input_bytes ${cfunction}
  (call $JS_NewUint8ArrayCopy (local.get $ctx) (global.get $box) (call $int (i64.load (local.get $argv)))))
(func $op_random ${cfunction} (local $n i32)
  (local.set $n (call $int (i64.load (local.get $argv))))
  (if (i32.gt_u (local.get $n) (global.get $cap)) (then (call $room (local.get $n))))
  (if (call $random_get (global.get $buf) (local.get $n)) (then (unreachable)))
  (call $JS_NewUint8ArrayCopy (local.get $ctx) (global.get $buf) (local.get $n)))
;; xorshift128+, seeded by the host when a job first asks.
(func $op_math_random ${cfunction} (local $x i64) (local $y i64)
  (if (i32.eqz (global.get $seeded))
    (then
      (if (call $random_get (global.get $tmp) (i32.const 16)) (then (unreachable)))
      (global.set $s0 (i64.or (i64.load (global.get $tmp)) (i64.const 1)))
      (global.set $s1 (i64.load offset=8 (global.get $tmp)))
      (global.set $seeded (i32.const 1))))
  (local.set $x (global.get $s0))
  (local.set $y (global.get $s1))
  (global.set $s0 (local.get $y))
  (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 23))))
  (global.set $s1 (i64.xor (i64.xor (local.get $x) (local.get $y))
    (i64.xor (i64.shr_u (local.get $x) (i64.const 17)) (i64.shr_u (local.get $y) (i64.const 26)))))
  (call $JS_NewNumber (local.get $ctx) (f64.mul (f64.const 0x1p-53)
    (f64.convert_i64_u (i64.shr_u (i64.add (global.get $s1) (local.get $y)) (i64.const 11))))))
(func $op_start ${cfunction}
  (global.set $run (call $JS_DupValue (local.get $ctx) (i64.load (local.get $argv))))
  (global.set $step (call $JS_DupValue (local.get $ctx) (i64.load offset=8 (local.get $argv))))
  (global.set $rejected (call $JS_DupValue (local.get $ctx) (i64.load offset=16 (local.get $argv))))
  (call $qjs_set_promise_rejection_handler (i32.const 1))
  (global.get $UNDEFINED))

(func (export "jh_buf") (param $min i32) (result i32) (local $p i32)
  (if (i32.gt_u (local.get $min) (global.get $boxcap))
    (then
      (if (i32.eqz (local.tee $p (call $malloc (local.get $min)))) (then (return (i32.const 0))))
      (call $free (global.get $box))
      (global.set $box (local.get $p))
      (global.set $boxcap (local.get $min))))
  (global.get $box))
(func (export "jh_wake")
  (global.set $woken (i32.const 1))
  (global.set $seeded (i32.const 0)))
(func $drain
  (loop $more (br_if $more (call $JS_ExecutePendingJob (global.get $rt) (global.get $tmp)))))
(func $enter (param $entry i32) (param $len i32) (result i64) (local $v i64) (local $p i32)
  (call $release (global.get $resulttext))
  (global.set $resulttext (i32.const 0))
  (call $JS_FreeValue (global.get $ctx) (global.get $result))
  (i64.store offset=16 (global.get $tmp) (call $number (local.get $entry)))
  (i64.store offset=24 (global.get $tmp) (call $number (local.get $len)))
  (i64.store offset=32 (global.get $tmp) (call $number (global.get $woken)))
  (global.set $woken (i32.const 0))
  (local.set $v (call $JS_Call (global.get $ctx) (global.get $run) (global.get $UNDEFINED)
    (i32.const 3) (i32.add (global.get $tmp) (i32.const 16))))
  ;; True: the handler goes on when promises are settled.
  (block $done (loop $more
    (br_if $done (i64.ne (local.get $v) (global.get $TRUE)))
    (call $drain)
    (local.set $v (call $JS_Call (global.get $ctx) (global.get $step) (global.get $UNDEFINED) (i32.const 0) (i32.const 0)))
    (br $more)))
  (global.set $result (local.get $v))
  (if (i64.eq (local.get $v) (global.get $UNDEFINED)) (then (return (i64.const 0))))
  (if (i32.eqz (call $broken (local.get $v)))
    (then
      (local.set $p (call $bytes (local.get $v)))
      (global.set $resulttext (global.get $own))
      (if (i32.ne (local.get $p) (i32.const -1))
        (then (return (i64.or (i64.shl (i64.extend_i32_u (local.get $p)) (i64.const 32)) (i64.extend_i32_u (global.get $len))))))))
  ;; What run and step throw themselves is such as a lack of memory.
  (global.set $result (global.get $UNDEFINED))
  (local.set $v (call $JS_GetException (global.get $ctx)))
  (local.set $p (call $JS_ToCStringLen2 (global.get $ctx) (global.get $tmp) (local.get $v) (i32.const 0)))
  (if (i32.eqz (local.get $p)) (then (unreachable)))
  (drop (call $jh_fail (i32.const 1) (local.get $p) (i32.load (global.get $tmp))))
  (call $release (local.get $p))
  (call $JS_FreeValue (global.get $ctx) (local.get $v))
  (i64.const 0))
(func $complain (param $v i64) (local $p i32)
  (local.set $p (call $JS_ToCStringLen2 (global.get $ctx) (global.get $tmp) (local.get $v) (i32.const 0)))
  (if (local.get $p) (then (call $jh_log (i32.const 8) (local.get $p) (i32.load (global.get $tmp))))))
;; Ends the start of a worker that threw v.
(func $die (param $v i64)
  (call $complain (local.get $v))
  (if (i64.ge_u (local.get $v) (i64.const -4294967296))
    (then (call $complain (call $JS_GetPropertyStr (global.get $ctx) (local.get $v) ${place("stack")}))))
  (unreachable))
;; 1: the last module has run, 2: it has thrown, 0: it waits.
(func $started (param $promise i64) (local $state i32)
  (local.set $state (call $JS_PromiseState (global.get $ctx) (local.get $promise)))
  (if (i32.eqz (local.get $state))
    (then (call $jh_log (i32.const 8) ${place(waits)} (i32.const ${waits.length})) (unreachable)))
  (if (i32.eq (local.get $state) (i32.const 2))
    (then (call $die (call $JS_PromiseResult (global.get $ctx) (local.get $promise))))))
(func (export "host_get_timezone_offset") (param i32 i32) (result i32) (i32.const 0))
(func (export "host_interrupt") (result i32) (i32.const 0))
(func (export "host_promise_rejection") (param $promise i32) (param $reason i32) (param $handled i32)
  (i64.store offset=40 (global.get $tmp) (i64.load (local.get $promise)))
  (i64.store offset=48 (global.get $tmp) (i64.load (local.get $reason)))
  (i64.store offset=56 (global.get $tmp) (call $number (local.get $handled)))
  (if (i64.ne (global.get $rejected) (i64.const 0))
    (then (call $JS_FreeValue (global.get $ctx) (call $JS_Call (global.get $ctx) (global.get $rejected) (global.get $UNDEFINED)
      (i32.const 3) (i32.add (global.get $tmp) (i32.const 40))))))
  (call $qjs_free_value (local.get $promise))
  (call $qjs_free_value (local.get $reason)))
(func (export "host_module_normalize") (param i32 i32) (result i32) (i32.const 0))
(func (export "host_module_load") (param i32 i32) (result i32) (i32.const 0))
(func (export "host_call") (param i32 i32 i32 i32 i32) (result i32) (i32.const 0))
;; There are no streams: 8 is EBADF.
(func (export "fd_close") (param i32) (result i32) (i32.const 8))
(func (export "fd_fdstat_get") (param i32 i32) (result i32) (i32.const 8))
(func (export "fd_seek") (param i32 i64 i32 i32) (result i32) (i32.const 8))
(func (export "fd_write") (param i32 i32 i32 i32) (result i32) (i32.const 8))`;
