#!/usr/bin/python3
"""Makes JSON of mail: who wrote what to whom, the text, and what is attached.

Mail is decades of conventions (encodings of headers, parts in parts, five ways to name a file), and the library that
comes with Python knows them.
"""

import hashlib
import sys
from email import policy
from email.parser import BytesParser
from html.parser import HTMLParser

sys.path.insert(0, "../../sdk/process/python")  # where jobhost_worker is, from this folder

from jobhost_worker import Permanent, serve, worker  # noqa: E402


class Text(HTMLParser):
    """The text of a page, for mail that has no other."""

    def __init__(self, page):
        super().__init__()
        self.parts, self.hidden = [], 0
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in ("script", "style")
        if tag in ("p", "br", "div", "tr", "li"):
            self.parts.append("\n")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style") and self.hidden > 0

    def handle_data(self, data):
        if not self.hidden:
            self.parts.append(data)

    def __str__(self):
        lines = (" ".join(line.split()) for line in "".join(self.parts).split("\n"))
        return "\n".join(line for line in lines if line)


def addresses(message, *fields):
    return [
        {"name": a.display_name, "address": a.addr_spec}
        for field in fields for header in message.get_all(field, []) for a in header.addresses
    ]


def text_of(message):
    body = message.get_body(("plain", "html"))
    if body is None:
        return ""
    content = body.get_content()
    return str(Text(content)) if body.get_content_subtype() == "html" else content.strip()


def attachment(part):
    content = part.get_payload(decode=True) or b""
    return {
        "name": part.get_filename() or "", "type": part.get_content_type(), "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


@worker
def parse(job):
    with job.open() as file:  # which may be large
        message = BytesParser(policy=policy.default).parse(file)
    if not message.keys():
        raise Permanent("this is no mail: it has no header", code="no_mail", category="validation")
    date = message["date"].datetime if message["date"] else None
    for defect in message.defects:
        job.log(f"odd: {type(defect).__name__}")
    job.counter("mails").add()
    return {
        "from": addresses(message, "from"), "to": addresses(message, "to", "cc"),
        "subject": message["subject"] or "", "date": date.isoformat() if date else None,
        "text": text_of(message), "attachments": [attachment(part) for part in message.iter_attachments()],
    }


serve()
