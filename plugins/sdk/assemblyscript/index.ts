// The SDK for writing jobhost workers in AssemblyScript: see README.md.

export { act, jh_buf, run, Job, Level } from "./assembly/job";
export { Errno, errnoText, Failure, raise } from "./assembly/failure";
export { toBytes, toText, quote } from "./assembly/bytes";
export { KV } from "./assembly/kv";
export { Counter, Gauge, Histogram } from "./assembly/metrics";
export { Call, Reply, Request, Response } from "./assembly/http";
export { Child, Spec } from "./assembly/submit";
export { Inbox, Pending, Timer } from "./assembly/wait";
export { State, StateEvent, StateFinished, StateStarted, Watch } from "./assembly/state";
export { jh_wake, now } from "./assembly/runtime";
import * as host from "./assembly/host";
export { host };
