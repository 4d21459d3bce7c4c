"""The stream of tasks: batches out, answers to those who asked."""

import collections
import math
import queue
import threading
import time

from . import worker_pb2 as pb
from .errors import Stopped, call_error

_MAX_BATCH = 1 << 20  # bytes of a batch to which nothing is added
_MAX_FRAME = 2 << 20  # of a frame that isn't cut into pieces
_MAX_WAITING = 4 << 20  # then whoever wants to send waits
_MAX_WHOLE = 80 << 20


class Sender:
    """Takes frames of all threads and gives them away in batches."""

    def __init__(self):
        self._changed = threading.Condition()
        self._waiting, self._bytes, self._closed = collections.deque(), 0, False

    def send(self, frame):
        size = frame.ByteSize()
        frames = [(frame, size)] if size <= _MAX_FRAME else list(_pieces(frame))
        with self._changed:
            while self._bytes > _MAX_WAITING and not self._closed:
                self._changed.wait()
            if self._closed:
                raise Stopped("send to the host")
            self._waiting.extend(frames)
            self._bytes += size
            self._changed.notify_all()

    def close(self):
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def batches(self):
        """Yields batches until close."""
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                batch, size = [], 0
                while self._waiting and (not batch or size + self._waiting[0][1] <= _MAX_BATCH):
                    frame, n = self._waiting.popleft()
                    batch.append(frame)
                    size += n
                self._bytes -= size
                self._changed.notify_all()
            yield pb.ToHost(frames=batch)


def _pieces(frame):
    data, run = frame.SerializeToString(), frame.run
    for i in range(0, len(data), _MAX_FRAME // 2):
        part = data[i : i + _MAX_FRAME // 2]
        yield pb.WorkerFrame(run=run, piece=pb.Piece(data=part, last=i + len(part) == len(data))), len(part)


class Run:
    """One attempt at a task. Threads may share it."""

    def __init__(self, number, task, sender):
        self.task, self.cancelled, self.over = task, False, False
        self.deadline = time.monotonic() + task.timeout_us / 1e6 if task.timeout_us else math.inf
        self._number, self._sender = number, sender
        self._lock = threading.Lock()  # protects the rest
        self._calls, self._last, self._pieces = {}, 0, b""
        self._told, self._later = -math.inf, None  # of progress

    def report(self, progress):
        """Tells progress, ten times a second and the last one."""
        with self._lock:
            now = time.monotonic()
            if now - self._told < 0.1:
                self._later = progress
                return
            self._told, self._later = now, None
        self.post(progress=progress)

    def post(self, **call):
        """Asks the host for something without waiting."""
        self._sender.send(pb.WorkerFrame(run=self._number, call=pb.Call(**call)))

    def ask(self, what, **call):
        """Asks the host for something and waits for the answer. Raises the CallError of its errno."""
        answered = queue.SimpleQueue()
        with self._lock:
            if self.over:
                raise Stopped(what)
            self._last += 1
            self._calls[self._last] = answered
            number = self._last
        self._sender.send(pb.WorkerFrame(run=self._number, call=pb.Call(id=number, **call)))
        answer = answered.get()
        if answer is None:
            raise Stopped(what)
        if answer.errno < 0:
            raise call_error(answer.errno, what, answer.error)
        return answer

    def end(self, result):
        if self._later:
            self.post(progress=self._later)
        self._sender.send(pb.WorkerFrame(run=self._number, result=result))

    def answer(self, answer):
        with self._lock:
            waiting = self._calls.pop(answer.call, None)
        if waiting:
            waiting.put(answer)

    def stop(self):
        """Ends all that waits for the host, now and later."""
        with self._lock:
            self.over = True
            waiting, self._calls = self._calls, {}
        for call in waiting.values():
            call.put(None)

    def piece(self, piece):
        """Puts a frame together; None = it isn't whole yet."""
        self._pieces += piece.data
        if len(self._pieces) > _MAX_WHOLE:
            raise ValueError("a frame in pieces is larger than 80 MiB")
        if not piece.last:
            return None
        whole, self._pieces = self._pieces, b""
        return pb.HostFrame.FromString(whole)
