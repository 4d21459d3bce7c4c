#!/usr/bin/python3
"""Greets whoever the payload names: the smallest useful worker."""

import sys

sys.path.insert(0, "..")  # where jobhost_worker is, from this folder; "." for a copy beside this file

from jobhost_worker import Permanent, serve  # noqa: E402


def hello(job):
    name = job.input.strip()
    if not name:
        raise Permanent("nobody to greet: the payload is empty")
    return b"hello, " + name


serve(hello)
