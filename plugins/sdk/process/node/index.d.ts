// Workers for jobhost in JavaScript, as processes.

/** Text, bytes, or anything that JSON.stringify takes. null and undefined are nothing. */
export type Data = string | Uint8Array | ArrayBuffer | ArrayBufferView | object | number | boolean | null | undefined;

/** Does one job; what it returns is the result. Handlers run at the same time, as far as they await something. */
export type Handler = (job: Job) => Data | void | Promise<Data | void>;

/** A handler for payloads of any size: they are read by job.stream(), and bytes(), text() and json() have nothing of large ones. */
export interface StreamHandler {
  stream: true;
  handler: Handler;
}

/** What a worker is told when it starts. */
export interface Host {
  worker: string;
  config: Record<string, string>;
  /** Jobs that may run at one time in this process. */
  slots: number;
  version: string;
}

/**
 * Does jobs until the host ends the process. handlers is a function, or an object of functions by entry, of which
 * default is that of jobs that name none. start is called once, before the first job; when it throws, the worker is not loaded.
 */
export function serve(
  handlers: Handler | Record<string, Handler | StreamHandler>,
  options?: { start?: (host: Host) => void | Promise<void> },
): void;

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
  readonly priority: 'critical' | 'high' | 'normal' | 'low' | 'background';
  readonly worker: string;
  /** The id of the workflow that the job is a step of, or empty. */
  readonly trace: string;
  readonly labels: Record<string, string>;
  readonly config: Record<string, string>;
  /** Bytes of the payload. */
  readonly size: number;
  /** Whether the job was cancelled: end soon. */
  readonly cancelled: boolean;
  /** Is aborted when the job is cancelled, and when the attempt is past its deadline. */
  readonly signal: AbortSignal;
  label(name: string): string | undefined;
  /** A secret that is granted to the worker; HostError with code "denied" for any other. */
  secret(name: string): Promise<string>;
  /** The payload piece by piece, once. */
  stream(): AsyncGenerator<Uint8Array>;
  /** Appends to the result; what the handler returns comes last. */
  write(part: Data): Promise<void>;
  /** Publishes a message at once, whatever becomes of the attempt. */
  emit(message: Data): void;
  /** Says how far the attempt is; total 0 = unknown. */
  progress(done: number, total?: number): void;
  /** Milliseconds until the deadline; Infinity = there is none, 0 = stop now. */
  remaining(): number;
  /** One call is one line of the job's log. console prints to the log of the host. */
  readonly log: Record<'debug' | 'info' | 'warn' | 'error', (...values: unknown[]) => void>;

  /** Keys and values that all jobs of the worker share; changed when the job succeeds, exactly once. */
  readonly kv: {
    get(key: string): Promise<string | undefined>;
    getBytes(key: string): Promise<Uint8Array | undefined>;
    /** ttl in milliseconds; 0 = for good. */
    set(key: string, value: Data, options?: { ttl?: number }): Promise<void>;
    delete(key: string): Promise<void>;
    /** Adds 1, or delta, and returns the sum; beyond 2^53 that is a BigInt. */
    add(key: string, delta?: number | bigint): Promise<number | bigint>;
    /** 0 = there is no such key. Ask for it before the value. */
    version(key: string): Promise<number | bigint>;
    /** Sets a key if it has the version that version returned; false = it has not. */
    cas(key: string, version: number | bigint, value: Data): Promise<boolean>;
  };

  /** Sends a request where the manifest lets the worker go. Rejects with ResponseError or HostError. */
  fetch(url: string, init?: RequestInit): Operation<Response>;
  /**
   * Has the host send a request when this job has succeeded. The response comes as a job for entry;
   * empty = the worker's own. The promise is of the id by which the reply names the request.
   */
  defer(url: string, init?: RequestInit & { entry?: string; args?: Data }): Promise<string>;
  /** A promise of value after so many milliseconds. */
  after<T = undefined>(ms: number, value?: T): Operation<T>;
  /** The first of several; the others are dropped. */
  race<T>(operations: Iterable<Promise<T>>): Promise<{ index: number; value: T }>;

  /** Submits a job when this one has succeeded, exactly once. The promise is of its id. */
  submit(spec: Spec): Promise<string>;
  /** Submits a job at once, whatever becomes of this one. */
  submitNow(spec: Spec): Promise<string>;
  /** submitNow for those who wait: ended is of what became of the job, as callbacks get it. */
  start(spec: Spec): Promise<{ id: string; ended: Operation<any> }>;

  /** How far the job's tasks are, for each other and for everyone. */
  readonly state: States;
  /** What a fiber is sent. */
  inbox(): Stream<Body>;

  counter(name: string, labels?: Labels): { add(n?: number): Promise<void> };
  gauge(name: string, labels?: Labels): { set(value: number): Promise<void> };
  histogram(name: string, labels?: Labels): { observe(value: number): Promise<void> };
}

export type Labels = Record<string, string | number>;

/** What takes time. Others go on meanwhile. */
export interface Operation<T> extends Promise<T> {
  /** Gives it up; a request that is under way is cancelled. */
  drop(): void;
}

/** Messages, one by one, until nobody can send any more. */
export interface Stream<T> extends AsyncIterable<T> {
  next(): Promise<IteratorResult<T, undefined>>;
  drop(): void;
}

export interface RequestInit {
  method?: string;
  headers?: Record<string, string | number | string[]>;
  /** An object is sent as JSON. */
  body?: Data;
}

export interface Response extends Body {
  status: number;
  /** The first value of each field, by its name in lower case; all has all values. */
  headers: Record<string, string>;
  all: Record<string, string[]>;
  /** 200 to 299. */
  get ok(): boolean;
  /** Returns the response, or throws a StatusError from 400 on. */
  check(): this;
}

/** Reads the payload of a job that a response came as. check() of the response throws when there was none. */
export function parseReply(job: Body): { id: string; response: Response; args: string; argBytes: Uint8Array };

export interface Spec {
  worker: string;
  payload?: Data;
  id?: string;
  contentType?: string;
  entry?: string;
  priority?: Job['priority'];
  /** Milliseconds, or such as "5s". */
  delay?: number | string;
  runAt?: Date | string;
  tasks?: number;
  maxAttempts?: number;
  timeout?: number | string;
  labels?: Record<string, string>;
}

export interface State {
  job: string;
  task: number;
  tag: string;
  /** 0 = not started, below 0 = an error, FINISHED; anything else is the worker's own. */
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

export const FINISHED: 2147483647;

export interface States {
  /** Durable when it is resolved, whatever becomes of the attempt. payload is an object of up to 64 KiB as JSON. */
  set(tag: string, status: number, message?: string, payload?: object): Promise<void>;
  started(tag: string): Promise<void>;
  finished(tag: string): Promise<void>;
  error(tag: string, error: Error | string): Promise<void>;
  warning(tag: string, text: string): Promise<void>;
  /** The state that prevails: the one with the lowest status. */
  get(query?: StateQuery): Promise<State>;
  /** First the states that there are, with replay, then that this was all, then each change. */
  watch(query?: StateQuery): Stream<{ state?: State; replay: boolean; sentinel?: true }>;
  /** Waits until all tasks have at least that status; rejects with a Failure with code "timeout" after so many milliseconds. */
  synchronize(tag: string, status: number, timeout?: number): Promise<State>;
}

export type Category = 'validation' | 'timeout' | 'network' | 'resource' | 'business' | 'system' | 'unknown';

export interface Details {
  /** 1 to 64 of A-Z a-z 0-9 . _ - */
  code?: string;
  category?: Category;
  severity?: 'critical' | 'error' | 'warning' | 'info';
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

/** Thrown by a handler to run again after so many milliseconds; the attempt doesn't count. */
export class Snooze extends Error {
  constructor(ms: number);
}

/** The host's refusal of a call. */
export class HostError extends Error {
  code: 'not_found' | 'denied' | 'stopped' | 'limit' | 'invalid' | 'io' | 'closed' | 'conflict' | 'unknown';
  errno: number;
}

/** There was no response: reason is such as "timeout", "dns" or "denied". */
export class ResponseError extends Failure {
  reason: string;
}

/** A response that says no. Permanent for 400 to 499 except 408, 409, 425 and 429. */
export class StatusError extends Failure {
  status: number;
}
