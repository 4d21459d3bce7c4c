import { HostError, answer, data, decode, host } from "./core.js";

export const kv = {
  get(key) {
    const bytes = kv.getBytes(key);
    return bytes && decode(bytes);
  },
  getBytes(key) {
    const bytes = host.kv_get(key);
    return bytes === -1 ? undefined : answer("get key " + key, bytes);
  },
  version(key) {
    return answer("version of key " + key, host.kv_version(key));
  },
  set(key, value, { ttl = 0 } = {}) {
    answer("set key " + key, host.kv_set(key, data(value), Math.ceil(ttl)));
  },
  delete(key) {
    answer("delete key " + key, host.kv_del(key));
  },
  add(key, delta = 1) {
    const sum = host.kv_add(key, delta);
    // Errnos are the least numbers of 64 bits that there are.
    if (typeof sum === "bigint" && sum < -(2n ** 63n) + 256n) throw new HostError("add to key " + key, Number(-(2n ** 63n) - sum));
    return sum;
  },
  cas(key, version, value) {
    const n = host.kv_cas(key, version, data(value));
    if (n === -8) return false;
    answer("compare and set key " + key, n);
    return true;
  },
};
