"""What a job waits for."""

import json
from dataclasses import dataclass
from datetime import datetime

from . import worker_pb2 as pb
from .errors import Closed
from .http import parse_response

_MAX_READ = 1 << 20


class Pending:
    """Something that Job.wait waits for. It belongs to the attempt that began it."""

    def __init__(self, run, what, number):
        self._run, self._what, self._number = run, what, number
        self._message = None  # once it was taken

    def drop(self):
        """Gives it up; a request that is under way is cancelled."""
        if self._number is not None:
            self._run.post(drop=pb.Drop(handle=self._number))
            self._number = None

    def _handle(self):
        if self._number is None:
            raise Closed(self._what, "it was dropped")
        return self._number

    def _read(self):
        return self._run.ask(self._what, read=pb.Read(handle=self._handle(), max=_MAX_READ)).data

    def _take(self):
        """Waits for the one message, whole; every time the same."""
        if self._message is None:
            parts = [self._read()]
            while len(parts[-1]) == _MAX_READ:
                parts.append(self._read())
            self._message = b"".join(parts)
            self.drop()
        return self._message


class Timer(Pending):
    """Is ready when its time has come."""


class Call(Pending):
    """A request on its way, and then its response."""

    def response(self):
        """Waits for the response. Raises ResponseError if there is none; a status is no error."""
        return parse_response(self._take(), self._what)


class Child(Pending):
    """A job that this attempt has submitted; id names it."""

    id = ""

    def ended(self):
        """Waits for the end of the job, and returns what is told of it, as docs/api.md has it under callbacks."""
        return json.loads(self._take())


class Inbox(Pending):
    """What a fiber is sent."""

    def next(self):
        """Waits for the next message. Raises Closed when nobody can send any more."""
        return self._read()

    def __iter__(self):
        while True:
            try:
                yield self.next()
            except Closed:
                return


STATE_NOT_STARTED, STATE_STARTED, STATE_FINISHED = 0, 1, 2**31 - 1
STATE_ERROR, STATE_WARNING = -1, -2


@dataclass
class State:
    """What a task has reported under a tag; version 0 = nothing yet."""

    job: str = ""
    task: int = 0
    tag: str = ""
    status: int = 0
    message: str = ""
    payload: dict = None
    timestamp: datetime = None
    version: int = 0


def state_of(told):
    """A state of its JSON."""
    known = {name: told[name] for name in State.__dataclass_fields__ if name in told}
    if stamp := known.get("timestamp"):
        known["timestamp"] = _time(stamp)
    return State(**known)


def _time(text):
    """Reads RFC 3339 with any number of digits."""
    head, dot, rest = text.replace("Z", "+00:00").partition(".")
    if dot:
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        head += "." + digits[:6].ljust(6, "0") + rest[len(digits):]
    return datetime.fromisoformat(head)


@dataclass
class StateEvent:
    """What a watch tells: a state, of before the watch began with replay; sentinel = that was all of before."""

    state: State = None
    replay: bool = False
    sentinel: bool = False


class StateWatch(Pending):
    """Tells of states and their changes."""

    def next(self):
        """Waits for the next event. Raises Limit when 256 changes were left unread: watch anew."""
        told = json.loads(self._read())
        state = told.get("state")
        return StateEvent(state_of(state) if state else None, told.get("replay", False), told.get("sentinel", False))

    def __iter__(self):
        while True:
            yield self.next()
