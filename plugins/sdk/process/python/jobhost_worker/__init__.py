"""Workers for jobhost in Python, as processes.

    from jobhost_worker import Permanent, serve

    def hello(job):
        return b"hello, " + job.input

    serve(hello)
"""

from .errors import (
    CallError, Closed, Conflict, Denied, Failure, Invalid, IOFault, Limit, NotFound, Permanent, ResponseError, Retry,
    Snooze, StatusError, Stopped,
)
from .http import Reply, Request, Response, parse_reply
from .job import DEBUG, ERROR, INFO, WARN, Job
from .pending import STATE_ERROR, STATE_FINISHED, STATE_NOT_STARTED, STATE_STARTED, STATE_WARNING, State, StateEvent
from .serve import Host, serve, worker

__all__ = [
    "CallError", "Closed", "Conflict", "DEBUG", "Denied", "ERROR", "Failure", "Host", "INFO", "IOFault", "Invalid", "Job",
    "Limit", "NotFound", "Permanent", "Reply", "Request", "Response", "ResponseError", "Retry", "STATE_ERROR",
    "STATE_FINISHED", "STATE_NOT_STARTED", "STATE_STARTED", "STATE_WARNING", "Snooze", "State", "StateEvent", "StatusError",
    "Stopped", "WARN", "parse_reply", "serve", "worker",
]
