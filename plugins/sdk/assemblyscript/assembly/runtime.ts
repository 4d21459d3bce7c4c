// What stands in for what AssemblyScript expects of a browser: asc is told so by asconfig.json.

import * as host from "./host";
import { toBytes } from "./bytes";

/** Seeds Math.random, when it is first used. */
export function seed(): f64 {
  const bits = new Uint8Array(8);
  host.random_get(bits.dataStart, 8);
  return load<f64>(bits.dataStart);
}

/**
 * Seeds Math.random anew in each job. It is for workers that draw numbers when they start: export it as
 * `jh_wake`, or their jobs go on from the same ones.
 */
export function jh_wake(): void {
  Math.seedRandom(reinterpret<i64>(seed()));
}

/** The time in milliseconds since 1970, as Date.now() has it elsewhere. */
export function now(): i64 {
  const time = new Uint8Array(8);
  host.clock_time_get(0, 1000000, time.dataStart);
  return load<i64>(time.dataStart) / 1000000;
}

/** Is the global console. */
export namespace console {
  export function debug(text: string = ""): void { line(-4, text); }
  export function log(text: string = ""): void { line(0, text); }
  export function info(text: string = ""): void { line(0, text); }
  export function warn(text: string = ""): void { line(4, text); }
  export function error(text: string = ""): void { line(8, text); }
}

function line(level: i32, text: string): void {
  const bytes = toBytes(text);
  host.log(level, bytes.dataStart, bytes.length);
}

/** Is the global trace, which writes to the log. */
export function trace(message: string, n: i32 = 0, a0: f64 = 0, a1: f64 = 0, a2: f64 = 0, a3: f64 = 0, a4: f64 = 0): void {
  const values: f64[] = [a0, a1, a2, a3, a4];
  for (let i = 0; i < n; i++) message += (i == 0 ? " " : ", ") + values[i].toString();
  line(-4, message);
}
