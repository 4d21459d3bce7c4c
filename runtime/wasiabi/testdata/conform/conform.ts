// The checks that are written in AssemblyScript, whose runtime has nothing to do with a libc. The
// payload is the name of one, or "list". A check that fails ends with unreachable, which is a trap.

// @ts-ignore: decorator
@external("wasi_snapshot_preview1", "args_sizes_get") declare function args_sizes_get(count: usize, size: usize): u16;
// @ts-ignore: decorator
@external("wasi_snapshot_preview1", "args_get") declare function args_get(list: usize, text: usize): u16;
// @ts-ignore: decorator
@external("wasi_snapshot_preview1", "environ_sizes_get") declare function environ_sizes_get(count: usize, size: usize): u16;
// @ts-ignore: decorator
@external("wasi_snapshot_preview1", "environ_get") declare function environ_get(list: usize, text: usize): u16;
// @ts-ignore: decorator
@external("wasi_snapshot_preview1", "fd_read") declare function fd_read(fd: u32, list: usize, n: usize, got: usize): u16;
// @ts-ignore: decorator
@external("wasi_snapshot_preview1", "fd_write") declare function fd_write(fd: u32, list: usize, n: usize, done: usize): u16;
// @ts-ignore: decorator
@external("wasi_snapshot_preview1", "random_get") declare function random_get(at: usize, n: usize): u16;
// @ts-ignore: decorator
@external("wasi_snapshot_preview1", "proc_exit") declare function proc_exit(code: u32): void;

const OK: u16 = 0;
const BADF: u16 = 8;

// Where results, buffers of one call and texts are.
const pair = memory.data(8);
const iovec = memory.data(8);
const input = memory.data(128);
const list = memory.data(64);
const text = memory.data(1024);

// What asc calls where a runtime check fails; its own is imported from a host in JavaScript.
export function abort(_message: string | null, _file: string | null, _line: u32, _column: u32): void {
  unreachable();
}

function holds(condition: bool): void {
  if (!condition) unreachable();
}

function send(fd: u32, s: string): u16 {
  const bytes = String.UTF8.encode(s);
  store<u32>(iovec, changetype<usize>(bytes));
  store<u32>(iovec + 4, bytes.byteLength);
  store<u32>(pair, 0);
  const errno = fd_write(fd, iovec, 1, pair);
  if (errno == OK) holds(load<u32>(pair) == <u32>bytes.byteLength);
  return errno;
}

// The texts of a list of n pointers, which lie behind each other, each with a NUL at its end.
function texts(n: u32, size: u32): string[] {
  const all: string[] = [];
  for (let i: u32 = 0; i < n; i++) {
    const at = load<u32>(list + i * 4);
    holds(<usize>at >= text && <usize>at < text + size);
    all.push(String.UTF8.decodeUnsafe(at, text + size - at, true));
  }
  return all;
}

function arguments(): string[] {
  holds(args_sizes_get(pair, pair + 4) == OK);
  const n = load<u32>(pair), size = load<u32>(pair + 4);
  holds(n * 4 <= 64 && size <= 1024 && args_get(list, text) == OK);
  return texts(n, size);
}

function environment(): string[] {
  holds(environ_sizes_get(pair, pair + 4) == OK);
  const n = load<u32>(pair), size = load<u32>(pair + 4);
  holds(n * 4 <= 64 && size <= 1024 && environ_get(list, text) == OK);
  return texts(n, size);
}

function argumentCount(want: u32): void {
  holds(args_sizes_get(pair, pair + 4) == OK && load<u32>(pair) == want);
}

function variableCount(want: u32): void {
  holds(environ_sizes_get(pair, pair + 4) == OK && load<u32>(pair) == want);
}

// What the host gives to checks whose name begins with given/, behind the program's name.
function givenArguments(): void {
  const got = arguments();
  holds(got.length == 4 && got[1] == "one" && got[2] == 'a "second" one' && got[3] == "3");
}

function givenVariables(): void {
  const got = environment();
  holds(got.length == 3);
  holds(got.includes("plain=text") && got.includes('quoted=a "b" c') && got.includes("lines=one\ntwo"));
}

function someRandom(): void {
  for (let i: u32 = 0; i < 32; i++) store<u8>(text + i, 0);
  holds(random_get(text, 32) == OK);
  let set = 0;
  for (let i: u32 = 0; i < 32; i++) set += i32(load<u8>(text + i) != 0);
  holds(set > 20);
}

function noRandom(): void {
  store<u8>(text, 77);
  holds(random_get(text, 0) == OK && load<u8>(text) == 77);
}

function badDescriptor(): void {
  store<u32>(pair, 0);
  holds(fd_write(-31337, 0, 0, pair) == BADF);
  holds(fd_write(3, 0, 0, pair) == BADF);
}

function exit(code: u32): void {
  proc_exit(code);
  unreachable();
}

const names = [
  "bare/as/argument_count", "given/as/argument_count", "given/as/arguments", "bare/as/variable_count", "given/as/variable_count",
  "given/as/variables", "bare/as/bad_descriptor", "bare/as/output", "bare/as/exit_33", "bare/as/exit_0", "bare/as/random",
  "bare/as/random_nothing",
];

function run(name: string): void {
  if (name == names[0]) argumentCount(1);
  else if (name == names[1]) argumentCount(4);
  else if (name == names[2]) givenArguments();
  else if (name == names[3]) variableCount(0);
  else if (name == names[4]) variableCount(3);
  else if (name == names[5]) givenVariables();
  else if (name == names[6]) badDescriptor();
  else if (name == names[7]) holds(send(1, "hello") == OK);
  else if (name == names[8]) exit(33);
  else if (name == names[9]) exit(0);
  else if (name == names[10]) someRandom();
  else if (name == names[11]) noRandom();
  else unreachable();
}

export function _start(): void {
  store<u32>(iovec, input);
  store<u32>(iovec + 4, 128);
  holds(fd_read(0, iovec, 1, pair) == OK);
  const name = String.UTF8.decodeUnsafe(input, load<u32>(pair));
  if (name == "list") holds(send(1, names.join("\n") + "\n") == OK);
  else run(name);
}
