// What a worker imports from "jobhost". jobhost-js puts it into the worker's
// module; there is nothing of it outside of a sandbox.

declare module "jobhost" {
  /** Text, bytes, or anything that JSON.stringify takes. null and undefined are nothing. */
  export type Data = string | Uint8Array | ArrayBuffer | ArrayBufferView | object | number | boolean | null | undefined;

  /** An entry: the default export of a worker, or another one that jobs name. */
  export type Handler = (job: Job) => Data | void | Promise<Data | void>;

  /** Something that came, to be read as often as needed. */
  export interface Body {
    bytes(): Uint8Array;
    text(): string;
    json<T = any>(): T;
  }

  /** The attempt that runs, and its payload. */
  export interface Job extends Body {
    readonly id: string;
    /** Number of the task, from 0, and how many there are. */
    readonly task: number;
    readonly tasks: number;
    /** From 1. */
    readonly attempt: number;
    readonly priority: "critical" | "high" | "normal" | "low" | "background";
    readonly worker: string;
    /** The id of the workflow that the job is a step of, or empty. */
    readonly trace: string;
    label(name: string): string | undefined;
    /** Appends to the result; what the handler returns comes last. */
    write(part: Data): void;
    /** Publishes a message at once, whatever becomes of the attempt. */
    emit(message: Data): void;
    /** Says how far the attempt is; total 0 = unknown. */
    progress(done: number, total?: number): void;
    /** Milliseconds until the deadline; Infinity = there is none, 0 = stop now. */
    remaining(): number;
  }

  /** A value of the worker's config in the manifest. It is there at the top level too. */
  export function config(name: string): string | undefined;
  /** A secret that is granted to the worker; HostError with code "denied" for any other. */
  export function secret(name: string): string | undefined;

  /** One call is one line of the job's log. console prints there as well, a line for each line. */
  export const log: Record<"debug" | "info" | "warn" | "error", (...values: unknown[]) => void>;

  /** UTF-8. TextEncoder and TextDecoder are there too. */
  export function encode(text: string): Uint8Array;
  export function decode(bytes: Uint8Array | ArrayBuffer | ArrayBufferView): string;

  /** n random bytes, up to 1 MiB, from the host. crypto.getRandomValues and crypto.randomUUID are there too. */
  export function random(n: number): Uint8Array;
  /** Has f called before each job whose sandbox was put back to its beginning; see the README. */
  export function onWake(f: () => void): void;

  export type Category = "validation" | "timeout" | "network" | "resource" | "business" | "system" | "unknown";
  export interface Details {
    /** 1 to 64 of A-Z a-z 0-9 . _ - */
    code?: string;
    category?: Category;
    severity?: "critical" | "error" | "warning" | "info";
    /** Kept with the failure, up to 16 KiB as JSON. */
    context?: object;
    cause?: unknown;
  }
  /** An error with what people and retry policies want to know of it. */
  export class Failure extends Error {
    constructor(message: string | Error, details?: Details & { permanent?: boolean });
    code?: string;
    category?: Category;
    permanent: boolean;
  }
  /** Thrown by a handler that no further attempt will help. */
  export class Permanent extends Failure {
    constructor(message: string | Error, details?: Details);
  }
  /** Thrown by a handler to run again later; the attempt doesn't count. */
  export class Snooze extends Error {
    /** Milliseconds, or a duration such as "5s" or "2d". */
    constructor(time: number | string);
  }
  /** The host's refusal of a call. */
  export class HostError extends Error {
    code: "not_found" | "denied" | "stopped" | "limit" | "invalid" | "io" | "closed" | "conflict" | "unknown";
    errno: number;
  }

  /** Keys and values that all jobs of the worker share; changed when the job succeeds, exactly once. */
  export const kv: {
    get(key: string): string | undefined;
    getBytes(key: string): Uint8Array | undefined;
    /** ttl in milliseconds; 0 = for good. */
    set(key: string, value: Data, options?: { ttl?: number }): void;
    delete(key: string): void;
    /** Adds 1, or delta, and returns the sum; beyond 2^53 that is a BigInt. */
    add(key: string, delta?: number | bigint): number | bigint;
    /** 0 = there is no such key. Ask for it before the value. */
    version(key: string): number | bigint;
    /** Sets a key if it has the version that version returned; false = it has not. */
    cas(key: string, version: number | bigint, value: Data): boolean;
  };

  /** What takes time. Others go on meanwhile. */
  export interface Operation<T> extends Promise<T> {
    /** Gives it up; a request that is under way is cancelled. */
    drop(): void;
  }
  /** The first of several; the others are dropped. */
  export function race<T>(operations: Iterable<Promise<T>>): Promise<{ index: number; value: T }>;
  /** A promise of value after so many milliseconds. setTimeout and clearTimeout are there too. */
  export function after<T = undefined>(ms: number, value?: T): Operation<T>;

  export class Headers {
    constructor(init?: Record<string, string | string[]> | Iterable<[string, string]>);
    append(name: string, value: string): void;
    /** All values of a field, with commas between, or null. */
    get(name: string): string | null;
    getAll(name: string): string[];
    has(name: string): boolean;
    delete(name: string): void;
    [Symbol.iterator](): Iterator<[string, string]>;
  }
  export interface RequestInit {
    method?: string;
    headers?: Headers | Record<string, string | string[]> | Iterable<[string, string]>;
    /** An object is sent as JSON. */
    body?: Data;
  }
  export class Response implements Body {
    /** 0 in a reply to a deferred request that got no response. */
    status: number;
    headers: Headers;
    /** 200 to 299. */
    get ok(): boolean;
    bytes(): Uint8Array;
    text(): string;
    json<T = any>(): T;
    /** Returns the response, or throws a StatusError from 400 on, or the ResponseError if there was none. */
    check(): this;
  }
  /** There was no response: reason is such as "timeout", "dns" or "denied". */
  export class ResponseError extends Failure {
    reason: string;
  }
  /** A response that says no. Permanent for 400 to 499 except 408, 409, 425 and 429. */
  export class StatusError extends Failure {
    status: number;
  }
  /** Sends a request where the manifest lets the worker go. Rejects with ResponseError or HostError. */
  export function fetch(url: string, init?: RequestInit): Operation<Response>;

  /**
   * Has the host send a request when this job has succeeded. The response comes as a job for entry;
   * empty = the worker's own. Returns the id by which the reply names the request.
   */
  export function defer(url: string, init?: RequestInit & { entry?: string; args?: Data }): string;
  /** Reads the payload of a job that a response came as. */
  export function parseReply(job: Job): { id: string; response: Response; args: string; argBytes: Uint8Array };

  export interface Spec {
    worker: string;
    payload?: Data;
    id?: string;
    contentType?: string;
    entry?: string;
    priority?: Job["priority"];
    /** Milliseconds, or such as "5s". */
    delay?: number | string;
    runAt?: Date | string;
    tasks?: number;
    maxAttempts?: number;
    timeout?: number | string;
    labels?: Record<string, string>;
  }
  /** Submits a job when this one has succeeded, exactly once, and returns its id. */
  export function submit(spec: Spec): string;
  /** Submits a job at once, whatever becomes of this one, and returns its id. */
  export function submitNow(spec: Spec): string;
  /** Submits a job at once. The promise is of what became of it, as callbacks get it. */
  export function start(spec: Spec): Operation<any> & { readonly id: string };

  /** Messages, one by one, until nobody can send any more. */
  export interface Stream<T> extends AsyncIterable<T> {
    next(): Operation<IteratorResult<T, undefined>>;
    drop(): void;
  }
  /** What a fiber is sent. */
  export function inbox(): Stream<Body>;

  export interface State {
    job: string;
    task: number;
    tag: string;
    /** 0 = not started, below 0 = an error, state.FINISHED; anything else is the worker's own. */
    status: number;
    message: string;
    payload?: any;
    timestamp: string;
    version: number;
  }
  export interface StateQuery {
    /** From 0; none = all. */
    task?: number;
    /** None = all. */
    tag?: string;
    /** Another job, which takes a grant. */
    job?: string;
  }
  /** How far the job's tasks are, for each other and for everyone. */
  export const state: {
    readonly FINISHED: 2147483647;
    /** Durable when it returns, whatever becomes of the attempt. payload is an object of up to 64 KiB as JSON. */
    set(tag: string, status: number, message?: string, payload?: object): void;
    started(tag: string): void;
    finished(tag: string): void;
    error(tag: string, error: Error | string): void;
    warning(tag: string, text: string): void;
    /** The state that prevails: the one with the lowest status. */
    get(query?: StateQuery): State;
    /** First the states that there are, with replay, then that this was all, then each change. */
    watch(query?: StateQuery): Stream<{ state?: State; replay: boolean; sentinel?: true }>;
    /** Waits until all tasks have at least that status; throws a Failure with code "timeout" after so many milliseconds. */
    synchronize(tag: string, status: number, timeout?: number): Promise<State>;
  };

  type Labels = Record<string, string | number>;
  /** The worker's own metrics. */
  export function counter(name: string, labels?: Labels): { add(n?: number): void };
  export function gauge(name: string, labels?: Labels): { set(value: number): void };
  export function histogram(name: string, labels?: Labels): { observe(value: number): void };
}
