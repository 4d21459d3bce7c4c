;; The kernel of one Extism plugin: the memory through which host and guest
;; exchange bytes, apart from the guest's own, and all 32 functions that a guest
;; may import from extism:host/env. What is only memory is done here, so that a
;; guest's loads and stores are calls from wasm to wasm; what needs the host
;; goes on to it with places and lengths that were looked up here.
;;
;; A kernel whose memory is all zero is as new. Memory above the used part is
;; always zero, because nothing is ever written there. The only loop is in clear,
;; and goes through the host.
;;
;; The memory begins with the root, which guests cannot reach. i32 at
;;    0  used: bytes of the heap that blocks take, free ones included
;;    4  where the text of the error is; 0 = no error
;;    8  where the input is      12  its length
;;   16  where the output is     20  its length
;; i64 at
;;   24  which lists of free blocks have a block, one bit each
;; i32 at
;;   64  the first block of each of 56 lists of free blocks
;;
;; The heap begins at 512. A block is a header of 16 bytes and its data, and is
;; known by the place of the data, p. i32 at
;;   p-16  room: bytes of data that fit, a multiple of 8
;;   p-12  length: bytes of data that were asked for
;;    p-8  the next free block of the same list
;;    p-4  p xor 0x6a09e667 if the block is in use, 0 if it is free
;; Guests can write to headers. Whatever they write there, nothing is read or
;; written outside of the used heap on its account.
;;
;; List c has free blocks with room for size(c): 16, 24, 32, 48, 64, 96 and so on.
;;
;; kernel.go knows this layout; TestLayout compares.
(module
  (import "jobhost:extism" "take" (func $take (param $to i32)))
  (import "jobhost:extism" "config_get" (func $config_get (param $name i32) (param $name_len i32) (result i32)))
  (import "jobhost:extism" "var_get" (func $var_get (param $name i32) (param $name_len i32) (result i32)))
  (import "jobhost:extism" "var_set" (func $var_set (param $name i32) (param $name_len i32) (param $value i32) (param $value_len i32)))
  (import "jobhost:extism" "http_request" (func $http_request (param $request i32) (param $request_len i32) (param $body i32) (param $body_len i32) (result i32)))
  (import "jobhost:extism" "http_status_code" (func $http_status_code (result i32)))
  (import "jobhost:extism" "http_headers" (func $http_headers (result i32)))
  (import "jobhost:extism" "log" (func $log (param $level i32) (param $text i32) (param $text_len i32)))
  (import "jobhost:extism" "get_log_level" (func $get_log_level (result i32)))
  (import "jobhost:extism" "pause" (func $pause))

  (memory (export "memory") 1)

  ;; used returns the size of the used heap.
  (func $used (result i64) (i64.load32_u (i32.const 0)))

  ;; room returns how large the heap can get without growing the memory.
  (func $room (result i64)
    (i64.sub (i64.shl (i64.extend_i32_u (memory.size)) (i64.const 16)) (i64.const 512)))

  ;; list returns the last list whose blocks have at most so much room, which is at least 16.
  (func $list (param $room i32) (result i32)
    (local $log i32)
    (local.set $log (i32.sub (i32.const 31) (i32.clz (local.get $room))))
    (i32.add
      (i32.shl (i32.sub (local.get $log) (i32.const 4)) (i32.const 1))
      (i32.and (i32.shr_u (local.get $room) (i32.sub (local.get $log) (i32.const 1))) (i32.const 1))))

  ;; size returns the least room of the blocks of a list.
  (func $size (param $list i32) (result i32)
    (i32.shl
      (i32.or (i32.const 2) (i32.and (local.get $list) (i32.const 1)))
      (i32.add (i32.shr_u (local.get $list) (i32.const 1)) (i32.const 3))))

  ;; head returns where the first block of a list is kept.
  (func $head (param $list i32) (result i32)
    (i32.add (i32.const 64) (i32.shl (local.get $list) (i32.const 2))))

  ;; set_head makes a block, or 0, the first of a list.
  (func $set_head (param $list i32) (param $p i32)
    (local $bit i64)
    (local.set $bit (i64.shl (i64.const 1) (i64.extend_i32_u (local.get $list))))
    (i32.store (call $head (local.get $list)) (local.get $p))
    (i64.store (i32.const 24)
      (if (result i64) (local.get $p)
        (then (i64.or (i64.load (i32.const 24)) (local.get $bit)))
        (else (i64.and (i64.load (i32.const 24)) (i64.xor (local.get $bit) (i64.const -1)))))))

  ;; hand_out puts a block of that length into use.
  (func $hand_out (param $p i32) (param $length i32) (result i32)
    (i32.store (i32.sub (local.get $p) (i32.const 12)) (local.get $length))
    (i32.store (i32.sub (local.get $p) (i32.const 4)) (i32.xor (local.get $p) (i32.const 0x6a09e667)))
    (local.get $p))

  ;; clear writes zeros. The kernel has no meter by which a guest is stopped, and a
  ;; guest needs but a few instructions to have gigabytes cleared: so there it
  ;; may be stopped, before each megabyte.
  (func $clear (param $p i32) (param $n i32)
    (loop $pieces
      (if (i32.gt_u (local.get $n) (i32.const 0x4000)) (then (call $pause)))
      (if (i32.gt_u (local.get $n) (i32.const 0x100000))
        (then
          (memory.fill (local.get $p) (i32.const 0) (i32.const 0x100000))
          (local.set $p (i32.add (local.get $p) (i32.const 0x100000)))
          (local.set $n (i32.sub (local.get $n) (i32.const 0x100000)))
          (br $pieces))))
    (memory.fill (local.get $p) (i32.const 0) (local.get $n)))

  ;; pop takes the first block of a list, cleared, or 0.
  (func $pop (param $list i32) (param $length i32) (result i32)
    (local $p i32) (local $at i64)
    (local.set $p (i32.load (call $head (local.get $list))))
    (if (i32.eqz (local.get $p)) (then (return (i32.const 0))))
    (local.set $at (i64.sub (i64.extend_i32_u (local.get $p)) (i64.const 512)))
    (if
      (i32.or
        (i64.lt_s (local.get $at) (i64.const 16))
        (i64.gt_s (i64.add (local.get $at) (i64.extend_i32_u (call $size (local.get $list)))) (call $used)))
      (then ;; The guest wrote to the header before: this list is lost.
        (call $set_head (local.get $list) (i32.const 0))
        (return (i32.const 0))))
    (call $set_head (local.get $list) (i32.load (i32.sub (local.get $p) (i32.const 8))))
    (call $clear (local.get $p) (local.get $length))
    (call $hand_out (local.get $p) (local.get $length)))

  ;; fits reports whether a block with that room fits above the used heap,
  ;; growing the memory for it if that is wanted.
  (func $fits (param $room i32) (param $grow i32) (result i32)
    (local $more i64)
    (local.set $more
      (i64.sub
        (i64.add (call $used) (i64.add (i64.extend_i32_u (local.get $room)) (i64.const 16)))
        (call $room)))
    (if (i64.le_s (local.get $more) (i64.const 0)) (then (return (i32.const 1))))
    (if (i32.eqz (local.get $grow)) (then (return (i32.const 0))))
    (i32.ne
      (memory.grow (i32.wrap_i64 (i64.shr_u (i64.add (local.get $more) (i64.const 65535)) (i64.const 16))))
      (i32.const -1)))

  ;; extend makes a block above the used heap, where it fits.
  (func $extend (param $room i32) (param $length i32) (result i32)
    (local $p i32)
    (local.set $p (i32.add (i32.load (i32.const 0)) (i32.const 528)))
    (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.add (local.get $room) (i32.const 16))))
    (i32.store (i32.sub (local.get $p) (i32.const 16)) (local.get $room))
    (call $hand_out (local.get $p) (local.get $length)))

  ;; alloc returns a block of zeros, or 0 if none was asked for or there is no
  ;; memory left. A block that was freed is used again only when the memory
  ;; would have to grow, since guests exist that read what they have freed.
  (func $alloc (export "alloc") (param $length i64) (result i64)
    (local $n i32) (local $list i32) (local $room i32) (local $p i32)
    (if (i64.ge_u (i64.sub (local.get $length) (i64.const 1)) (i64.const 0xc0000000)) (then (return (i64.const 0))))
    (local.set $n (i32.wrap_i64 (local.get $length)))
    (if (i32.gt_u (local.get $n) (i32.const 16))
      (then (local.set $list (i32.add (call $list (i32.sub (local.get $n) (i32.const 1))) (i32.const 1)))))
    (local.set $room (call $size (local.get $list)))
    (if (call $fits (local.get $room) (i32.const 0))
      (then (return (i64.extend_i32_u (call $extend (local.get $room) (local.get $n))))))
    (local.set $p (call $pop (local.get $list) (local.get $n)))
    (if (local.get $p) (then (return (i64.extend_i32_u (local.get $p)))))
    (if (call $fits (local.get $room) (i32.const 1))
      (then (return (i64.extend_i32_u (call $extend (local.get $room) (local.get $n))))))
    (i64.extend_i32_u (call $scrape (local.get $list) (local.get $n))))

  ;; scrape finds a block when the memory can't grow by the size of the list:
  ;; with just the room that is needed, or else the smallest larger free one.
  (func $scrape (param $list i32) (param $length i32) (result i32)
    (local $room i32) (local $lists i64)
    (local.set $room (i32.and (i32.add (local.get $length) (i32.const 7)) (i32.const -8)))
    (if (i32.lt_u (local.get $room) (i32.const 16)) (then (local.set $room (i32.const 16))))
    (if (call $fits (local.get $room) (i32.const 1))
      (then (return (call $extend (local.get $room) (local.get $length)))))
    (local.set $lists
      (i64.and (i64.load (i32.const 24)) (i64.shl (i64.const -2) (i64.extend_i32_u (local.get $list)))))
    (if (i64.eqz (local.get $lists)) (then (return (i32.const 0))))
    (call $pop (i32.wrap_i64 (i64.ctz (local.get $lists))) (local.get $length)))

  ;; block returns a block in use, or 0 if there is none at that place.
  (func $block (param $place i64) (result i32)
    (local $at i64) (local $p i32)
    (local.set $at (i64.sub (local.get $place) (i64.const 512)))
    (local.set $p (i32.wrap_i64 (local.get $place)))
    (if
      (i32.or (i64.ge_u (local.get $at) (call $used)) (i64.lt_u (local.get $at) (i64.const 16)))
      (then (return (i32.const 0))))
    (if
      (i32.ne
        (i32.load (i32.sub (local.get $p) (i32.const 4)))
        (i32.xor (local.get $p) (i32.const 0x6a09e667)))
      (then (return (i32.const 0))))
    (local.get $p))

  ;; length returns the length of a block, or 0 if there is none in use there.
  (func $length (export "length") (export "length_unsafe") (param $place i64) (result i64)
    (local $p i32) (local $n i64)
    (local.set $p (call $block (local.get $place)))
    (if (i32.eqz (local.get $p)) (then (return (i64.const 0))))
    (local.set $n (i64.load32_u (i32.sub (local.get $p) (i32.const 12))))
    (select
      (i64.const 0) (local.get $n)
      (i64.gt_u (i64.add (i64.sub (local.get $place) (i64.const 512)) (local.get $n)) (call $used))))

  ;; free gives a block back. What isn't a block in use is ignored.
  (func $free (export "free") (param $place i64)
    (local $p i32) (local $room i32) (local $list i32)
    (local.set $p (call $block (local.get $place)))
    (if (i32.eqz (local.get $p)) (then (return)))
    (i32.store (i32.sub (local.get $p) (i32.const 4)) (i32.const 0))
    (if (i32.eq (local.get $p) (i32.load (i32.const 8)))
      (then (i32.store (i32.const 12) (i32.const 0)))) ;; There is no input any more.
    (local.set $room (i32.load (i32.sub (local.get $p) (i32.const 16))))
    (if (i32.lt_u (local.get $room) (i32.const 16)) (then (return))) ;; The guest wrote to it.
    (local.set $list (call $list (local.get $room)))
    (i32.store (i32.sub (local.get $p) (i32.const 8)) (i32.load (call $head (local.get $list))))
    (call $set_head (local.get $list) (local.get $p)))

  ;; inside reports whether so many bytes at a place are in the used heap.
  (func $inside (param $place i64) (param $length i64) (result i32)
    (local $at i64) (local $left i64)
    (local.set $at (i64.sub (local.get $place) (i64.const 512)))
    (local.set $left (i64.sub (call $used) (local.get $at)))
    (i32.and
      (i64.lt_u (local.get $at) (call $used))
      (i64.le_u (local.get $length) (local.get $left))))

  ;; part returns the bytes from a place to an end less than 8 bytes away, as a
  ;; word with zeros behind them. Before each end there are more than 8 bytes.
  (func $part (param $place i64) (param $end i64) (result i64)
    (i64.shr_u
      (i64.load (i32.sub (i32.wrap_i64 (local.get $end)) (i32.const 8)))
      (call $missing (local.get $place) (local.get $end))))

  ;; missing returns how many bits of a word at a place are behind an end.
  (func $missing (param $place i64) (param $end i64) (result i64)
    (i64.shl (i64.sub (i64.const 8) (i64.sub (local.get $end) (local.get $place))) (i64.const 3)))

  ;; put stores the bytes of a word that are before an end less than 8 bytes away.
  (func $put (param $place i64) (param $end i64) (param $value i64)
    (local $last i32) (local $kept i64)
    (local.set $last (i32.sub (i32.wrap_i64 (local.get $end)) (i32.const 8)))
    (local.set $kept (i64.sub (i64.const 64) (call $missing (local.get $place) (local.get $end))))
    (i64.store (local.get $last)
      (i64.or
        (i64.shr_u (i64.shl (i64.load (local.get $last)) (local.get $kept)) (local.get $kept))
        (i64.shl (local.get $value) (call $missing (local.get $place) (local.get $end))))))

  ;; Loads from outside of the used heap are 0, stores to it do nothing; of a word
  ;; that is partly outside the bytes count that are inside. These and the loads
  ;; of the input are what guests call most, so they usually call nothing.
  (func (export "load_u8") (param $place i64) (result i32)
    (if (i64.ge_u (i64.sub (local.get $place) (i64.const 512)) (i64.load32_u (i32.const 0)))
      (then (return (i32.const 0))))
    (i32.load8_u (i32.wrap_i64 (local.get $place))))
  (func (export "load_u64") (param $place i64) (result i64)
    (local $at i64) (local $used i64)
    (local.set $at (i64.sub (local.get $place) (i64.const 512)))
    (local.set $used (i64.load32_u (i32.const 0)))
    (if (i64.ge_u (local.get $at) (local.get $used)) (then (return (i64.const 0))))
    (if (i64.gt_u (i64.add (local.get $at) (i64.const 8)) (local.get $used))
      (then (return (call $part (local.get $place) (i64.add (local.get $used) (i64.const 512))))))
    (i64.load (i32.wrap_i64 (local.get $place))))
  (func (export "store_u8") (param $place i64) (param $value i32)
    (if (i64.ge_u (i64.sub (local.get $place) (i64.const 512)) (i64.load32_u (i32.const 0)))
      (then (return)))
    (i32.store8 (i32.wrap_i64 (local.get $place)) (local.get $value)))
  (func (export "store_u64") (param $place i64) (param $value i64)
    (local $at i64) (local $used i64)
    (local.set $at (i64.sub (local.get $place) (i64.const 512)))
    (local.set $used (i64.load32_u (i32.const 0)))
    (if (i64.ge_u (local.get $at) (local.get $used)) (then (return)))
    (if (i64.gt_u (i64.add (local.get $at) (i64.const 8)) (local.get $used))
      (then
        (call $put (local.get $place) (i64.add (local.get $used) (i64.const 512)) (local.get $value))
        (return)))
    (i64.store (i32.wrap_i64 (local.get $place)) (local.get $value)))

  ;; Input and output are ranges of the used heap; others are ignored.
  (func (export "input_set") (param $place i64) (param $length i64)
    (if (i32.eqz (call $inside (local.get $place) (local.get $length))) (then (return)))
    (i64.store32 (i32.const 8) (local.get $place))
    (i64.store32 (i32.const 12) (local.get $length)))
  (func (export "input_offset") (result i64) (i64.load32_u (i32.const 8)))
  (func (export "input_length") (result i64) (i64.load32_u (i32.const 12)))
  (func (export "input_load_u8") (param $index i64) (result i32)
    (if (i64.ge_u (local.get $index) (i64.load32_u (i32.const 12))) (then (return (i32.const 0))))
    (i32.load8_u (i32.add (i32.load (i32.const 8)) (i32.wrap_i64 (local.get $index)))))
  (func (export "input_load_u64") (param $index i64) (result i64)
    (local $length i64) (local $input i64)
    (local.set $length (i64.load32_u (i32.const 12)))
    (if (i64.ge_u (local.get $index) (local.get $length)) (then (return (i64.const 0))))
    (if (i64.gt_u (i64.add (local.get $index) (i64.const 8)) (local.get $length))
      (then
        (local.set $input (i64.load32_u (i32.const 8)))
        (return (call $part
          (i64.add (local.get $input) (local.get $index))
          (i64.add (local.get $input) (local.get $length))))))
    (i64.load (i32.add (i32.load (i32.const 8)) (i32.wrap_i64 (local.get $index)))))
  (func (export "output_set") (param $place i64) (param $length i64)
    (if (i32.eqz (call $inside (local.get $place) (local.get $length))) (then (return)))
    (i64.store32 (i32.const 16) (local.get $place))
    (i64.store32 (i32.const 20) (local.get $length)))
  (func (export "output_offset") (result i64) (i64.load32_u (i32.const 16)))
  (func (export "output_length") (result i64) (i64.load32_u (i32.const 20)))

  ;; error_set says that the call fails, with the text of a block; 0 takes it back.
  (func (export "error_set") (param $place i64)
    (if
      (i32.and
        (i64.ne (local.get $place) (i64.const 0))
        (i64.ge_u (i64.sub (local.get $place) (i64.const 512)) (call $used)))
      (then (return)))
    (i64.store32 (i32.const 4) (local.get $place)))
  (func (export "error_get") (result i64) (i64.load32_u (i32.const 4)))

  ;; reset frees everything: it makes the memory as new.
  (func (export "reset")
    (call $clear (i32.const 0) (i32.wrap_i64 (i64.add (call $used) (i64.const 512)))))
  (func (export "memory_bytes") (result i64) (call $room))

  ;; give makes a block of what the host holds ready, or 0 if that is nothing.
  ;; take tells the guest's fault when there is no memory for it.
  (func $give (param $length i32) (result i64)
    (local $p i64)
    (if (i32.eqz (local.get $length)) (then (return (i64.const 0))))
    (local.set $p (call $alloc (i64.extend_i32_u (local.get $length))))
    (call $take (i32.wrap_i64 (local.get $p)))
    (local.get $p))

  (func (export "config_get") (param $name i64) (result i64)
    (call $give (call $config_get (i32.wrap_i64 (local.get $name)) (i32.wrap_i64 (call $length (local.get $name))))))
  (func (export "var_get") (param $name i64) (result i64)
    (local $found i32)
    (local.set $found (call $var_get (i32.wrap_i64 (local.get $name)) (i32.wrap_i64 (call $length (local.get $name)))))
    (call $free (local.get $name))
    (call $give (local.get $found)))
  (func (export "var_set") (param $name i64) (param $value i64)
    (call $var_set
      (i32.wrap_i64 (local.get $name)) (i32.wrap_i64 (call $length (local.get $name)))
      (i32.wrap_i64 (local.get $value)) (i32.wrap_i64 (call $length (local.get $value))))
    (call $free (local.get $name))
    (call $free (local.get $value)))

  (func (export "http_request") (param $request i64) (param $body i64) (result i64)
    (local $response i32)
    (local.set $response
      (call $http_request
        (i32.wrap_i64 (local.get $request)) (i32.wrap_i64 (call $length (local.get $request)))
        (i32.wrap_i64 (local.get $body)) (i32.wrap_i64 (call $length (local.get $body)))))
    (call $free (local.get $request))
    (call $free (local.get $body))
    (call $give (local.get $response)))
  (func (export "http_status_code") (result i32) (call $http_status_code))
  (func (export "http_headers") (result i64) (call $give (call $http_headers)))

  (func $say (param $level i32) (param $text i64)
    (call $log (local.get $level) (i32.wrap_i64 (local.get $text)) (i32.wrap_i64 (call $length (local.get $text))))
    (call $free (local.get $text)))
  (func (export "log_trace") (param $text i64) (call $say (i32.const 0) (local.get $text)))
  (func (export "log_debug") (param $text i64) (call $say (i32.const 1) (local.get $text)))
  (func (export "log_info") (param $text i64) (call $say (i32.const 2) (local.get $text)))
  (func (export "log_warn") (param $text i64) (call $say (i32.const 3) (local.get $text)))
  (func (export "log_error") (param $text i64) (call $say (i32.const 4) (local.get $text)))
  (func (export "get_log_level") (result i32) (call $get_log_level)))
