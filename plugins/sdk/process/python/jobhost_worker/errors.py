"""What goes wrong, and how to say that a job fails."""

import json


class CallError(Exception):
    """The host could not do what was asked; errno is its number in docs/abi.md."""

    errno = 0
    words = "the call failed"

    def __init__(self, what, detail=""):
        super().__init__(f"{what}: {self.words}" + (f" ({detail})" if detail else ""))


class NotFound(CallError):
    """There is no such thing."""

    errno, words = -1, "not found"


class Denied(CallError):
    """The manifest doesn't grant it."""

    errno, words = -2, "not granted"


class Stopped(CallError):
    """The attempt is cancelled or past its deadline: let it pass, or end soon."""

    errno, words = -3, "cancelled or past the deadline"


class Limit(CallError):
    """A limit is reached."""

    errno, words = -4, "over the limit"


class Invalid(CallError):
    """An argument makes no sense."""

    errno, words = -5, "invalid argument"


class IOFault(CallError):
    """Something outside failed."""

    errno, words = -6, "I/O error"


class Closed(CallError):
    """Nothing more will come, or the thing was dropped."""

    errno, words = -7, "closed"


class Conflict(CallError):
    """It was changed meanwhile."""

    errno, words = -8, "conflict"


_ERRNOS = {e.errno: e for e in (NotFound, Denied, Stopped, Limit, Invalid, IOFault, Closed, Conflict)}


def call_error(errno, what, detail=""):
    """Returns the error of an errno."""
    return _ERRNOS.get(errno, CallError)(what, detail)


class Failure(Exception):
    """Fails the attempt, with what people and retry policies want to know of it.

    code is short and stable: 1 to 64 of A-Z a-z 0-9 . _ -. category is validation, timeout, network, resource,
    business, system or unknown; severity critical, error, warning or info. context is a dict, kept with the failure.
    Any other exception fails the attempt too, and may be tried again.
    """

    permanent = False

    def __init__(self, message="", *, code="", category="", severity="", context=None, permanent=None):
        super().__init__(message)
        self.code, self.category, self.severity, self.context = code, category, severity, context
        if permanent is not None:
            self.permanent = permanent

    def context_text(self):
        """The context as JSON; what JSON doesn't know is written as text."""
        return json.dumps(self.context, default=str) if self.context is not None else ""


class Retry(Failure):
    """Fails the attempt; the retry policy of the worker decides."""


class Permanent(Failure):
    """Fails the task for good."""

    permanent = True


class Snooze(Exception):
    """Lets the task run again after so many seconds; the attempt doesn't count."""

    def __init__(self, seconds):
        super().__init__(f"snooze for {seconds} s")
        self.seconds = seconds


class StatusError(Failure):
    """A response says no: permanent below 500, but for 408, 409, 425 and 429."""

    def __init__(self, status):
        permanent = 400 <= status < 500 and status not in (408, 409, 425, 429)
        super().__init__(
            f"the server answered {status}", code=f"http_{status}", permanent=permanent,
            category="business" if permanent else "network",
        )
        self.status = status


# What a reason means: whether the same request may succeed later, and the category.
_REASONS = {
    "denied": (False, "validation"), "invalid": (False, "validation"), "timeout": (True, "timeout"),
    "dns": (True, "network"), "connection": (True, "network"), "tls": (False, "network"), "protocol": (False, "network"),
    "response_too_large": (False, "resource"), "too_many": (False, "network"), "recursive": (False, "network"),
    "breaker_open": (True, "network"), "rate_limited": (True, "resource"), "exhausted": (True, "resource"),
}


class ResponseError(Failure):
    """There was no response; reason is the word of docs/abi.md, such as timeout, dns or denied."""

    def __init__(self, request, reason, message):
        retryable, category = _REASONS.get(reason, (True, "unknown"))
        text = message or reason
        super().__init__(f"{request}: {text}" if request else text, code=reason, category=category, permanent=not retryable)
        self.reason = reason
