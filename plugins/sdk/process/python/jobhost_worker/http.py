"""HTTP messages as the host reads and writes them."""

import base64
import json
from dataclasses import dataclass, field

from .errors import Invalid, Permanent, ResponseError, StatusError


@dataclass
class Request:
    """An HTTP request; only url is needed. A header may have one value or a list."""

    url: str
    method: str = "GET"
    headers: dict = field(default_factory=dict)
    body: bytes = b""

    def what(self):
        """Method and URL for errors, without the query, in which there may be secrets."""
        return f"{self.method} {self.url.partition('?')[0]}"

    def text(self):
        """The request as the host reads it."""
        lines = [f"{self.method} {self.url}"]
        for name, values in self.headers.items():
            if not name or ":" in name:
                raise Invalid(self.what(), f"header {name!r}")
            lines += [f"{name}: {value}" for value in (values if isinstance(values, (list, tuple)) else [values])]
        if " " in self.method or any("\n" in line or "\r" in line for line in lines):
            raise Invalid(self.what(), "a line break or a space where there can be none")
        body = self.body.encode() if isinstance(self.body, str) else bytes(self.body)
        return "\n".join(lines + ["", ""]).encode() + body


def request_of(url, **options):
    """A request, of what may be one already."""
    return url if isinstance(url, Request) else Request(url, **options)


@dataclass
class Response:
    """An HTTP response, with any status. Names of headers are in lower case, each with a list of values."""

    status: int
    headers: dict
    body: bytes

    @property
    def ok(self):
        """Whether the status is 200 to 299."""
        return 200 <= self.status <= 299

    def header(self, name, default=""):
        """The first value of a field."""
        return self.headers.get(name.lower(), [default])[0]

    def json(self):
        """The body as JSON."""
        return json.loads(self.body)

    def raise_for_status(self):
        """Raises StatusError for a status of 400 or more; a handler may let it pass."""
        if self.status >= 400:
            raise StatusError(self.status)
        return self


def _parse(text):
    head, between, body = text.partition(b"\n\n")
    lines = head.decode("utf-8", "replace").split("\n")
    if not between or not lines[0].isdigit():
        raise ValueError("no response")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(": ")
        headers.setdefault(name, []).append(value)
    return Response(int(lines[0]), headers, body)


def parse_response(text, what=""):
    """Reads a response as the host writes it; raises ResponseError if there was none."""
    try:
        response = _parse(text)
    except ValueError:
        raise Invalid(f"read the response to {what}") from None
    if response.status == 0:
        raise ResponseError(what, response.header("error"), response.body.decode("utf-8", "replace"))
    return response


@dataclass
class Reply:
    """What a job is given whose request was deferred: a response, or the error why there is none."""

    id: str
    args: bytes
    response: Response = None
    error: ResponseError = None


def parse_reply(payload):
    """Reads the payload of a job that a response came as; raises Permanent if it is none."""
    try:
        response = _parse(payload)
        reply = Reply(response.headers.pop("jobhost-request")[0], base64.b64decode(response.headers.pop("jobhost-args", [""])[0]))
    except (ValueError, KeyError):
        raise Permanent("the payload is no reply to a deferred request", code="no_reply", category="validation") from None
    if response.status == 0:
        reply.error = ResponseError("", response.header("error"), response.body.decode("utf-8", "replace"))
    else:
        reply.response = response
    return reply
