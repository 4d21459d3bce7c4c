import * as host from "./host";
import { toBytes, toText } from "./bytes";
import { Errno, must } from "./failure";

/**
 * The keys and values of the worker, which all its jobs share. What a job changes it sees itself at once.
 * It is applied when the job succeeds, exactly once; if it fails, nothing has changed. A key is 1 to 512
 * bytes without control characters, a value has up to 1 MiB.
 */
export class KV {
  /** The value of a key; null if it isn't there. */
  get(key: string): Uint8Array | null {
    const k = toBytes(key);
    let value = new Uint8Array(256);
    while (true) {
      const n = host.kv_get(k.dataStart, k.length, value.dataStart, value.length);
      if (n == Errno.NotFound) return null;
      must("get key " + key, n);
      if (n <= value.length) return value.subarray(0, n);
      value = new Uint8Array(n);
    }
  }

  /** The value of a key as a text; null if it isn't there. */
  getText(key: string): string | null {
    const value = this.get(key);
    return value ? toText(value) : null;
  }

  /** Sets a key to a text or bytes, for so many milliseconds; 0 = for good. */
  set<T>(key: string, value: T, ttl: i64 = 0): void {
    const k = toBytes(key);
    const v = toBytes(value);
    must("set key " + key, host.kv_set(k.dataStart, k.length, v.dataStart, v.length, ttl));
  }

  /** Removes a key; one that isn't there is fine. */
  delete(key: string): void {
    const k = toBytes(key);
    must("delete key " + key, host.kv_del(k.dataStart, k.length));
  }

  /**
   * Adds to a value that is a whole number in decimal, 0 without one, and returns the sum. What jobs add at
   * the same time adds up: it is the way to count.
   */
  add(key: string, delta: i64): i64 {
    const k = toBytes(key);
    const sum = host.kv_add(k.dataStart, k.length, delta);
    // Errors are the least numbers that there are.
    if (sum < i64.MIN_VALUE + 256) must("add to key " + key, <i32>(i64.MIN_VALUE - sum));
    return sum;
  }

  /** The version of a key, 0 if it isn't there, for compareAndSet. Ask for it before the value. */
  version(key: string): i64 {
    const k = toBytes(key);
    const version = host.kv_version(k.dataStart, k.length);
    if (version < 0) must("read version of key " + key, <i32>version);
    return version;
  }

  /**
   * Sets a key if it has the version that this job was told, and reports whether it had. If somebody changes
   * the key before this job has succeeded, the attempt fails and is made again.
   */
  compareAndSet<T>(key: string, version: i64, value: T): bool {
    const k = toBytes(key);
    const v = toBytes(value);
    const n = host.kv_cas(k.dataStart, k.length, version, v.dataStart, v.length);
    if (n == Errno.Conflict) return false;
    must("compare and set key " + key, n);
    return true;
  }
}
