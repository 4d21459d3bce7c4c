#!/usr/bin/env -S /usr/bin/python3 -B
"""Uses each part of the SDK, so that the suite of all SDKs can see it arrive at the host."""

import itertools
import os
import sys
import threading

sys.path.insert(0, "..")  # where jobhost_worker is, from this folder

from jobhost_worker import (  # noqa: E402
    DEBUG, Conflict, Denied, Failure, Permanent, Request, Response, Retry, Snooze, Stopped, serve, worker,
)


@worker
def upper(job):
    return bytes(c - 32 if 97 <= c <= 122 else c for c in job.input)


@worker("echo")
def echo(job):
    return job.input


@worker("info")
def info(job):
    group, _, name = job.input.decode().partition(".")
    if group == "secret":
        try:
            return job.secret(name)
        except Denied:
            return "denied"
    if group in ("config", "label"):
        return (job.config if group == "config" else job.labels).get(name, "none")
    if group == "job":
        return str(getattr(job, name))
    return getattr(job, group) if group in ("worker", "trace") else "none"


@worker("log")
def log(job):
    job.log(job.input.decode())
    job.log("debugging", DEBUG)


@worker("fail")
def fail(job):
    raise Permanent(job.input.decode(), code="bad_input", category="validation", context={"seen": True})


@worker("retry")
def retry(job):
    raise Retry(job.input.decode())


@worker("snooze")
def snooze(job):
    raise Snooze(1.5)


@worker("panic")
def panic(job):
    raise RuntimeError("boom")


@worker("count")
def count(job):
    return str(job.kv.add("count"))


@worker("keep")
def keep(job):
    value = job.kv.get("k")
    if value is None:
        job.kv.set("k", job.input)
    return value


@worker("swap")
def swap(job):
    job.kv.compare_and_set("k", job.kv.version("k"), job.input)
    try:
        job.kv.compare_and_set("k", 12345, b"")
    except Conflict:
        return "ok conflict"
    return "ok"


@worker("draw")
def draw(job):
    return os.urandom(8).hex()


@worker("fetch")
def fetch(job):
    try:
        response = job.fetch(job.input.decode())
    except Failure as e:
        return f"error: {e}"
    return f"{response.status} ".encode() + response.body


@worker("race")
def race(job):
    _, response = job.race(*(Request(url) for url in job.input.decode().split(" ")))
    assert isinstance(response, Response)
    return response.body


@worker("timeout")
def timeout(job):
    assert job.wait(job.after(0.01)) == 0
    return "late"


@worker("child")
def child(job):
    return job.submit("other", job.input)


@worker("spread")
def spread(job):
    job.progress(1, 2)
    job.counter("seen").add(1)
    job.emit(job.input)
    job.set_state("half", 50, "half")
    return str(job.get_state("half", task=job.task).status)


@worker("defer")
def defer(job):
    job.defer(job.input.decode(), "echo", b"args")


@worker("inbox")
def inbox(job):
    return job.recv()


# What follows is of processes only.


@worker("noop")
def noop(job):
    pass


@worker("size")
def size(job):
    n, file = 0, job.open()
    while part := file.read(100_000):
        n += job.write(part)
    job.log(n)


@worker("wait")
def wait(job):
    try:
        job.wait(job.after(3600))
    except Stopped:
        job.wait(job.after(0.01))  # it can wait and ask again
        assert job.cancelled and job.remaining() == 0
        job.kv.set("told", b"")
        raise
    return "the hour is over"


calls = itertools.count(1)


@worker("fresh")
def fresh(job):
    return str(next(calls))


meeting = threading.Barrier(4)


@worker("meet")
def meet(job):
    return str(meeting.wait(10) < 4)


@worker("lines")
def lines(job):
    print("to the output")
    print("to the error output", file=sys.stderr)


serve()
