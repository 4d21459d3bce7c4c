"""The job: all that a handler may ask of the host."""

import io
import json
import math
import time

from . import pending
from . import worker_pb2 as pb
from .errors import Conflict, Denied, Failure, Invalid, Limit, NotFound
from .http import request_of

DEBUG, INFO, WARN, ERROR = -4, 0, 4, 8

_MAX_PART = 1 << 20  # of what is read or written at once
_MAX_LINE = 128 << 10


def data_of(value):
    """Bytes of a result, payload or message: bytes, a str, None, or what JSON can write."""
    if value is None:
        return b""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode()


def _milliseconds(seconds):
    return max(math.ceil(seconds * 1000), 0)


class _Payload(io.RawIOBase):
    def __init__(self, run):
        self._run, self._left = run, b""

    def readable(self):
        return True

    def readinto(self, buffer):
        if not self._left:
            self._left = memoryview(self._run.ask("read the payload", read_input=pb.ReadInput(max=_MAX_PART)).data)
        n = min(len(buffer), len(self._left))
        buffer[:n], self._left = self._left[:n], self._left[n:]
        return n


class KV:
    """The keys and values of the worker, which all its jobs share. What a job changes it sees itself at once; it is
    applied when the job succeeds, exactly once."""

    def __init__(self, run):
        self._run = run

    def _get(self, key):
        return self._run.ask(f"get key {key}", kv_get=pb.KVGet(key=key.encode()))

    def get(self, key, default=None):
        """The value of a key as bytes, or default if there is none."""
        try:
            return self._get(key).data
        except NotFound:
            return default

    def set(self, key, value, ttl=0):
        """Sets a key for ttl seconds; 0 = for good."""
        self._run.ask(f"set key {key}", kv_set=pb.KVSet(key=key.encode(), value=data_of(value), ttl_ms=_milliseconds(ttl)))

    def delete(self, key):
        """Removes a key; one that isn't there is fine."""
        self._run.ask(f"delete key {key}", kv_delete=pb.KVDelete(key=key.encode()))

    def add(self, key, delta=1):
        """Adds to a value that is a whole number, 0 without one, and returns the sum. What jobs add at the same time adds up."""
        return self._run.ask(f"add to key {key}", kv_add=pb.KVAdd(key=key.encode(), delta=delta)).number

    def version(self, key):
        """The version of a key for compare_and_set, 0 if it isn't there. Ask for it before the value."""
        try:
            return self._get(key).number
        except NotFound:
            return 0

    def compare_and_set(self, key, version, value):
        """Sets a key if it has that version; raises Conflict if it has another."""
        call = pb.KVCompareAndSet(key=key.encode(), version=version, value=data_of(value))
        self._run.ask(f"compare and set key {key}", kv_compare_and_set=call)


class Metric:
    """A metric of the worker. A host that keeps none, such as that of jobhost exec, is told nothing."""

    def __init__(self, run, kind, name, labels):
        def quoted(value):
            return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

        if labels:
            name += "{" + ",".join(f'{key}="{quoted(value)}"' for key, value in labels.items()) + "}"
        self._run, self._name = run, name
        try:
            self._id = run.ask(f"define metric {name}", metric=pb.Metric(kind=kind, name=name)).number
        except Denied:
            self._id = None

    def observe(self, value=1):
        """Adds to a counter, sets a gauge, counts in a histogram."""
        if self._id is not None:
            self._run.ask(f"observe {self._name}", observe=pb.Observe(id=self._id, value=value))

    add = set = observe


class Job:
    """The attempt under way. It is valid until its handler returns, and threads may share it."""

    def __init__(self, run, host):
        self._run = run
        task = run.task
        self.id, self.worker, self.trace, self.priority = task.job, task.worker, task.trace, task.priority
        self.task, self.tasks, self.attempt = task.index, task.tasks, task.attempt
        self.labels, self.config = dict(task.labels), host.config
        self.input_size = max(task.input_bytes, len(task.input))
        self.log_level = task.log_level
        self.kv = KV(run)

    @property
    def input(self):
        """The payload as bytes. One of more than 1 MiB is fetched when it is first asked for; open reads piece by piece."""
        task = self._run.task
        if len(task.input) < self.input_size:
            task.input = self.open().read()
        return task.input

    def json(self):
        """The payload as JSON; one that is none fails the job for good."""
        try:
            return json.loads(self.input)
        except ValueError as e:
            raise Failure(f"the payload is no JSON: {e}", code="no_json", category="validation", permanent=True) from None

    def open(self):
        """The payload as a file, from its beginning. Use it instead of input, once."""
        task = self._run.task
        if len(task.input) >= self.input_size:
            return io.BytesIO(task.input)
        return io.BufferedReader(_Payload(self._run), _MAX_PART)

    def write(self, data):
        """Appends to the result, before what the handler returns."""
        data = data_of(data)
        for i in range(0, len(data), _MAX_PART):
            self._run.ask("write the result", output=pb.Output(data=data[i : i + _MAX_PART]))
        return len(data)

    def secret(self, name):
        """A secret that the manifest grants; raises Denied for any other, whether there is one or not."""
        return self._run.ask(f"read secret {name}", info=pb.Info(key="secret." + name)).data.decode()

    def log(self, text, level=INFO):
        """Writes a line to the job's log. What the worker prints goes to the host's log instead."""
        if level >= self.log_level:
            line = str(text).encode("utf-8", "replace")[:_MAX_LINE]
            self._run.post(log=pb.Log(level=level, line=line))

    def emit(self, data):
        """Publishes data to whoever watches the job, at once."""
        data, limit = data_of(data), self._run.task.output_limit
        if 0 < limit < len(data):
            raise Limit("emit")
        self._run.post(emit=pb.Emit(data=data))

    def progress(self, done, total=0):
        """Says how far the attempt is; total 0 = unknown. The host passes on ten reports a second."""
        self._run.report(pb.Progress(done=done, total=total))

    @property
    def cancelled(self):
        """Whether the job was cancelled: end soon."""
        return self._run.cancelled

    def remaining(self):
        """Seconds left for the attempt; infinite without a deadline, 0 when it must end now."""
        if self._run.cancelled or self._run.over:
            return 0.0
        return max(self._run.deadline - time.monotonic(), 0.0)

    def counter(self, name, **labels):
        """A counter of the worker: job.counter("requests", code="200").add(1)."""
        return Metric(self._run, 1, name, labels)

    def gauge(self, name, **labels):
        """A gauge of the worker, for set."""
        return Metric(self._run, 2, name, labels)

    def histogram(self, name, **labels):
        """A histogram of the worker, for observe."""
        return Metric(self._run, 3, name, labels)

    def submit(self, worker, payload=b"", **options):
        """Submits a job when this one has succeeded, exactly once, and returns its id.

        Options: id, content_type, entry, priority, delay (such as "5s"), run_at, tasks, max_attempts, timeout, and
        labels, a dict."""
        return self._submit(worker, payload, 0, options).id

    def submit_now(self, worker, payload=b"", **options):
        """Submits a job at once, whatever becomes of this one, and returns its id."""
        return self._submit(worker, payload, 1, options).id

    def start(self, worker, payload=b"", **options):
        """submit_now for those who wait for the end of the job."""
        return self._submit(worker, payload, 1, options)

    def _submit(self, worker, payload, when, options):
        labels = options.pop("labels", {})
        lines = [("worker", worker), *options.items(), *((f"label.{k}", f"{v} ") for k, v in labels.items())]
        text = "".join(f"{k}: {v}\n" for k, v in lines if v != "")
        if text.count("\n") != sum(v != "" for _, v in lines) or "\r" in text:
            raise Invalid(f"submit to {worker}", "an option has a line break")
        call = pb.Submit(spec=f"{text}\n".encode() + data_of(payload), when=when)
        answer = self._run.ask(f"submit to {worker}", submit=call)
        child = pending.Child(self._run, f"wait for a job of {worker}", answer.number)
        child.id = answer.data.decode()
        return child

    def send(self, url, **options):
        """Begins a request, a Request or its parts, and returns at once."""
        request = request_of(url, **options)
        number = self._run.ask(request.what(), http=pb.HTTP(request=request.text())).number
        return pending.Call(self._run, request.what(), number)

    def fetch(self, url, **options):
        """Sends a request, a Request or its parts (method, headers, body), and waits for its Response."""
        call = self.send(url, **options)
        try:
            return call.response()
        finally:
            call.drop()

    def fetch_all(self, requests, at_once=64):
        """Sends requests, at most so many at a time, and yields the index and the Response or exception of each as it comes."""
        waiting, left = {}, list(enumerate(requests))[::-1]
        try:
            while left or waiting:
                while left and len(waiting) < at_once:
                    index, request = left.pop()
                    try:
                        waiting[self.send(request)] = index
                    except (Limit, Denied, Invalid) as e:
                        if waiting and isinstance(e, Limit):
                            at_once = len(waiting)  # no more than the host lets be under way
                            left.append((index, request))
                            break
                        yield index, e
                if not waiting:
                    continue
                calls = list(waiting)
                call = calls[self.wait(*calls)]
                index = waiting.pop(call)
                try:
                    yield index, call.response()
                except Failure as e:
                    yield index, e
        finally:
            for call in waiting:
                call.drop()

    def race(self, *requests):
        """Sends all requests and returns the index and Response of the first good one; the others are dropped."""
        faults = []
        answers = self.fetch_all(requests, len(requests))
        try:
            for index, answer in answers:
                if not isinstance(answer, Exception) and answer.status < 400:
                    return index, answer
                faults.append(str(answer) if isinstance(answer, Exception) else f"status {answer.status}")
        finally:
            answers.close()
        raise Failure("no response is good: " + "; ".join(faults), code="race", category="network")

    def defer(self, url, entry="", args=b"", **options):
        """Leaves a request to the host, which sends it when this job has succeeded; the response comes as a job for
        entry, where parse_reply reads it. Returns the id by which the reply names it."""
        request = request_of(url, **options)
        what = f"defer {request.what()}"
        number = self._run.ask(what, http_defer=pb.HTTPDefer(request=request.text(), entry=entry, args=data_of(args))).number
        return self._run.ask(what, info=pb.Info(key=f"child.{number}")).data.decode()

    def after(self, seconds):
        """A timer for wait."""
        return pending.Timer(self._run, "wait for a timer", self._run.ask("make a timer", timer=pb.Timer(ms=_milliseconds(seconds))).number)

    def wait(self, *waiting, timeout=None):
        """Waits until one of the pending is ready and returns its index, or None when none was within timeout seconds.

        Raises Stopped when the attempt is cancelled, which is told once, or past its deadline."""
        for i, p in enumerate(waiting):
            if p._message is not None:
                return i
        ms = -1 if timeout is None else _milliseconds(timeout)
        call = pb.Wait(handles=[p._handle() for p in waiting], timeout_ms=ms)
        try:
            return self._run.ask("wait", wait=call).number
        except NotFound:
            return None

    def inbox(self):
        """What the fiber is sent; iterate over it, or wait for it with others. Jobs are refused with Denied."""
        return pending.Inbox(self._run, "receive", self._run.ask("receive", receive=pb.Receive()).number)

    def recv(self):
        """The next message that the fiber is sent. Raises Closed when nobody can send any more."""
        return self.inbox().next()

    def set_state(self, tag, status, message="", payload=None):
        """Reports how far this task is, durably and at once; payload is a dict."""
        encoded = b"" if payload is None else data_of(payload)
        call = pb.StateSet(tag=tag, status=status, message=str(message).encode(), payload=encoded)
        self._run.ask(f"set state {tag}", state_set=call)

    def set_started(self, tag):
        """set_state with "🟢 Started"."""
        self.set_state(tag, pending.STATE_STARTED, "🟢 Started")

    def set_finished(self, tag):
        """set_state with "⚫ Finished"."""
        self.set_state(tag, pending.STATE_FINISHED, "⚫ Finished")

    def set_error(self, tag, error):
        """set_state with the error after "🔴 "."""
        self.set_state(tag, pending.STATE_ERROR, f"🔴 {error}"[:1000])

    def set_warning(self, tag, warning):
        """set_state with the text after "🟡 "."""
        self.set_state(tag, pending.STATE_WARNING, f"🟡 {warning}"[:1000])

    def get_state(self, tag="", task=-1, job=None):
        """The state that prevails, that with the lowest status: of all tasks or one, all tags or one, this job or another
        that the manifest lets the worker watch."""
        tag = tag if job is None else f"{job}/{tag}"
        return pending.state_of(json.loads(self._run.ask(f"get state {tag}", state_get=pb.StateGet(task=task, tag=tag)).data))

    def watch_state(self, tag="", task=-1, job=None):
        """Follows states: iterate over it, or wait for it with others."""
        tag = tag if job is None else f"{job}/{tag}"
        number = self._run.ask(f"watch state {tag}", state_watch=pb.StateWatch(task=task, tag=tag)).number
        return pending.StateWatch(self._run, f"watch state {tag}", number)

    def synchronize(self, tag, target, timeout=None):
        """Waits until every task of the job has reported at least target under a tag, and returns the lowest state."""
        watch = self.watch_state(tag)
        waiting = [watch] + ([self.after(timeout)] if timeout is not None else [])
        try:
            while (lowest := self.get_state(tag)).status < target:
                if self.wait(*waiting) == 1:
                    raise Failure(f"synchronize {tag}: task {lowest.task} is at {lowest.status}: not in time", code="timeout", category="timeout")
                try:
                    watch.next()
                except Limit:  # more changes than it holds: the next begins with what there is
                    watch.drop()
                    watch = waiting[0] = self.watch_state(tag)
            return lowest
        finally:
            for p in waiting:
                p.drop()


__all__ = ["Job", "KV", "Metric", "Conflict", "DEBUG", "INFO", "WARN", "ERROR"]
