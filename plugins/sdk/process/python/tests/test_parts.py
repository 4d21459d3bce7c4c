"""The parts of the SDK that need no host."""

import base64
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from jobhost_worker import (  # noqa: E402
    Failure, Invalid, Permanent, Request, ResponseError, StatusError, parse_reply,
)
from jobhost_worker import worker_pb2 as pb  # noqa: E402
from jobhost_worker.http import parse_response  # noqa: E402
from jobhost_worker.job import data_of  # noqa: E402
from jobhost_worker.link import Run, Sender  # noqa: E402
from jobhost_worker.pending import state_of  # noqa: E402


class Messages(unittest.TestCase):
    def test_request(self):
        request = Request("http://site/?key=secret", "POST", {"accept": ["a", "b"], "x": 1}, "größe")
        self.assertEqual(request.text(), "POST http://site/?key=secret\naccept: a\naccept: b\nx: 1\n\ngröße".encode())
        self.assertEqual(request.what(), "POST http://site/")

    def test_a_line_is_no_two(self):
        for request in [Request("http://site/\nx: y"), Request("u", "GET\r"), Request("u", headers={"a": "b\nc"}), Request("u", headers={"a:": "b"})]:
            with self.assertRaises(Invalid):
                request.text()

    def test_response(self):
        response = parse_response(b"404\na: b: c\na: d\n\nno\n\nsuch page")
        self.assertEqual((response.status, response.headers, response.body), (404, {"a": ["b: c", "d"]}, b"no\n\nsuch page"))
        self.assertFalse(response.ok)
        with self.assertRaises(StatusError) as e:
            response.raise_for_status()
        self.assertTrue(e.exception.permanent)
        self.assertFalse(StatusError(503).permanent)
        with self.assertRaises(Invalid):
            parse_response(b"nonsense")

    def test_no_response(self):
        with self.assertRaises(ResponseError) as e:
            parse_response(b"0\nerror: denied\n\nthe worker may not go there", "GET u")
        self.assertEqual((e.exception.code, e.exception.category, e.exception.permanent), ("denied", "validation", True))
        self.assertEqual(str(e.exception), "GET u: the worker may not go there")

    def test_reply(self):
        args = base64.b64encode(b"order 7").decode()
        reply = parse_reply(f"201\njobhost-request: r1\njobhost-args: {args}\nx: y\n\nbody".encode())
        self.assertEqual((reply.id, reply.args, reply.response.headers), ("r1", b"order 7", {"x": ["y"]}))
        self.assertEqual(parse_reply(b"0\njobhost-request: r1\nerror: dns\n\n").error.reason, "dns")
        with self.assertRaises(Permanent):
            parse_reply(b"200\n\n")


class Values(unittest.TestCase):
    def test_data(self):
        for value, want in [(None, b""), (b"x", b"x"), (bytearray(b"x"), b"x"), ("ß", "ß".encode()), ({"a": [1, "ß"]}, '{"a": [1, "ß"]}'.encode())]:
            self.assertEqual(data_of(value), want)

    def test_failure(self):
        self.assertEqual(Failure("x", context={"at": object}).context_text(), '{"at": "<class \'object\'>"}')
        self.assertTrue(Permanent("x").permanent)
        self.assertFalse(Failure("x").permanent)

    def test_state(self):
        state = state_of({"job": "j", "task": 3, "tag": "t", "status": 2, "timestamp": "2026-11-22T09:00:00.123456789Z", "new": 1})
        self.assertEqual((state.task, state.status, state.timestamp.microsecond, state.version), (3, 2, 123456, 0))


class Frames(unittest.TestCase):
    def test_large_ones_go_in_pieces(self):
        sender = Sender()
        run = Run(7, pb.Task(), sender)
        big = os.urandom(5 << 20)
        run.post(emit=pb.Emit(data=b"small"))
        run.end(pb.Result(output=big))
        sender.close()
        batches = list(sender.batches())
        self.assertTrue(all(batch.ByteSize() <= 8 << 20 for batch in batches))
        frames = [frame for batch in batches for frame in batch.frames]
        self.assertEqual(frames[0].call.emit.data, b"small")
        self.assertEqual([f.piece.last for f in frames[1:]], [False] * (len(frames) - 2) + [True])
        whole = pb.WorkerFrame.FromString(b"".join(f.piece.data for f in frames[1:]))
        self.assertEqual(whole.result.output, big)

    def test_pieces_come_together(self):
        run = Run(7, pb.Task(), Sender())
        data = pb.HostFrame(run=7, answer=pb.Answer(call=3, data=b"x" * 1000)).SerializeToString()
        self.assertIsNone(run.piece(pb.Piece(data=data[:100])))
        self.assertEqual(run.piece(pb.Piece(data=data[100:], last=True)).answer.call, 3)


if __name__ == "__main__":
    unittest.main()
