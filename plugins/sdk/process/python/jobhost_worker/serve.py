"""The process: the handshake with the host, and the tasks."""

import base64
import concurrent.futures
import datetime
import os
import sys
import tempfile
import threading
import traceback
from dataclasses import dataclass

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from . import worker_pb2 as pb
from .errors import Failure, Snooze, Stopped
from .job import Job, data_of
from .link import Run, Sender

_PROTOCOL = 1
_MAX_MESSAGE = 16 << 20
_DEFAULT = "default"
_STACK = 2 << 20  # of a thread: all of them count for the memory of the process

_entries = {}  # that @worker has registered


@dataclass
class Host:
    """What a worker is told when it starts."""

    worker: str  # name in the manifest
    config: dict  # from the manifest
    slots: int  # jobs that may run at one time in this process
    version: str  # of the host, for people


def worker(entry):
    """Registers a handler for serve: @worker is the default entry, @worker("name") a further one."""
    if callable(entry):
        _entries[_DEFAULT] = entry
        return entry

    def register(handler):
        _entries[entry or _DEFAULT] = handler
        return handler

    return register


def serve(handlers=None, start=None):
    """Does jobs until the host ends the process; it doesn't return.

    handlers is a function, or a dict of functions by entry, of which "" is the default; None = those of @worker. A
    handler gets a Job and returns bytes, a str, None, or what JSON can write. Handlers run at the same time, each in a
    thread. start, if there is one, is called once with a Host, before the first job."""
    if callable(handlers):
        handlers = {_DEFAULT: handlers}
    entries = {name or _DEFAULT: handler for name, handler in (handlers or _entries).items()}
    if os.environ.get("JOBHOST_PLUGIN") != "worker":
        name = os.path.basename(sys.argv[0])
        sys.exit(f'{name} is a worker for jobhost, which starts it: see its section of the manifest, with abi = "process"')
    if str(_PROTOCOL) not in os.environ.get("PLUGIN_PROTOCOL_VERSIONS", str(_PROTOCOL)).split(","):
        sys.exit(f"this worker speaks version {_PROTOCOL} of the protocol, which the host doesn't")
    if not entries:
        sys.exit("this worker has no handler: give serve one, or put @worker before a function")
    _Program(entries, start).serve()


class _Program:
    def __init__(self, entries, start):
        self._start = start
        # The default comes first; without one, the first stands for it.
        self._names = sorted(entries, key=lambda name: (name != _DEFAULT, name))
        self._entries = {**entries, "": entries[self._names[0]]}
        self._host = Host("", {}, 0, "")
        self._threads = None
        self._idle = threading.Condition()  # protects runs
        self._runs = {}

    def serve(self):
        server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(8),
            options=[("grpc.max_receive_message_length", _MAX_MESSAGE), ("grpc.max_send_message_length", _MAX_MESSAGE)],
        )
        server.add_generic_rpc_handlers((self._service(), _health()))
        # A folder of its own: the name must be new, and nobody else's.
        socket = os.path.join(tempfile.mkdtemp(prefix="w", dir=os.environ.get("PLUGIN_UNIX_SOCKET_DIR")), "s")
        certificate = b""
        if trusted := os.environ.get("PLUGIN_CLIENT_CERT"):
            key, chain, certificate = _certificate()
            server.add_secure_port(f"unix:{socket}", grpc.ssl_server_credentials([(key, chain)], trusted.encode(), True))
        else:
            server.add_insecure_port(f"unix:{socket}")
        server.start()
        greeting = [1, _PROTOCOL, "unix", socket, "grpc", base64.b64encode(certificate).decode().rstrip("=")]
        if os.environ.get("PLUGIN_MULTIPLEX_GRPC"):
            greeting.append("false")
        print(*greeting, sep="|", flush=True)
        sys.stdout.reconfigure(line_buffering=True)  # what is printed from now on is for the host's log
        server.wait_for_termination()

    def _service(self):
        def unary(call, request, response):
            return grpc.unary_unary_rpc_method_handler(call, request.FromString, response.SerializeToString)

        return grpc.method_handlers_generic_handler("jobhost.worker.v1.Worker", {
            "Describe": unary(self._describe, pb.DescribeRequest, pb.DescribeResponse),
            "Drain": unary(self._drain, pb.DrainRequest, pb.DrainResponse),
            "Run": grpc.stream_stream_rpc_method_handler(self._run, pb.ToWorker.FromString, pb.ToHost.SerializeToString),
        })

    def _describe(self, request, context):
        if request.protocol != _PROTOCOL:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"this worker speaks version {_PROTOCOL} of the protocol")
        self._host = Host(request.worker, dict(request.config), request.slots, request.host)
        threading.stack_size(_STACK)
        self._threads = concurrent.futures.ThreadPoolExecutor(max(request.slots, 1))
        if self._start:
            try:
                self._start(self._host)
            except Exception as e:
                traceback.print_exc()
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"start worker {request.worker}: {e}")
        return pb.DescribeResponse(protocol=_PROTOCOL, sdk=f"python {sys.version.split()[0]}", entries=self._names)

    def _drain(self, request, context):
        with self._idle:
            while self._runs:
                self._idle.wait()
        return pb.DrainResponse()

    def _run(self, batches, context):
        sender = Sender()
        threading.Thread(target=self._receive, args=(batches, sender), daemon=True).start()
        yield from sender.batches()

    def _receive(self, batches, sender):
        try:
            for batch in batches:
                for frame in batch.frames:
                    self._take(frame, sender)
        except grpc.RpcError:
            pass  # the host is gone
        except Exception:
            traceback.print_exc()
        finally:
            # The host has ended the stream: nothing is left to do for anybody, whatever threads there are.
            sys.stdout.flush()
            os._exit(0)

    def _take(self, frame, sender):
        kind = frame.WhichOneof("frame")
        if kind == "task":
            run = Run(frame.run, frame.task, sender)
            with self._idle:
                self._runs[frame.run] = run
            self._threads.submit(self._do, frame.run, run)
            return
        run = self._runs.get(frame.run)
        if run is None:
            return  # it has ended
        if kind == "answer":
            run.answer(frame.answer)
        elif kind == "cancel":
            run.cancelled = True
        elif kind == "stop":
            run.stop()
        elif kind == "piece" and (whole := run.piece(frame.piece)):
            whole.run = frame.run
            self._take(whole, sender)

    def _do(self, number, run):
        try:
            result = self._call(run)
        except BaseException as e:
            traceback.print_exc()
            result = _failure(Failure(f"internal fault of the SDK: {e!r}", code="panic", category="system"))
        with self._idle:
            del self._runs[number]
            self._idle.notify_all()
        run.stop()
        try:
            run.end(result)
        except Stopped:
            pass  # nobody wants to know any more

    def _call(self, run):
        handler = self._entries.get(run.task.entry)
        if handler is None:
            fault = f"the worker has no entry {run.task.entry!r}"
            return _failure(Failure(fault, code="no_entry", category="validation", permanent=True))
        try:
            return pb.Result(output=data_of(handler(Job(run, self._host))))
        except Snooze as e:
            return pb.Result(snooze_ms=max(round(e.seconds * 1000), 1))
        except Failure as e:
            return _failure(e)
        except BaseException as e:  # SystemExit too: the process is not the handler's to end
            if isinstance(e, Stopped) and (run.cancelled or run.over):
                return pb.Result(stopped=pb.Stopped())
            fault = Failure(f"{type(e).__name__}: {e}", code=_code(e), category="unknown")
            return _failure(fault, traceback.format_exc(limit=-20))


def _code(e):
    """The name of an exception, as far as a code can have it."""
    return "".join(c for c in type(e).__name__ if c.isascii() and (c.isalnum() or c == "_"))[:64]


def _failure(e, stack=""):
    return pb.Result(failure=pb.Failure(
        code=e.code, category=e.category, severity=e.severity, message=str(e).encode("utf-8", "replace").decode(),
        context=e.context_text(), stack=stack, permanent=e.permanent,
    ))


def _health():
    """grpc.health.v1.Health, of which there is one answer: serving."""
    def serving(request, context):
        return b"\x08\x01"

    return grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": grpc.unary_unary_rpc_method_handler(serving)})


def _certificate():
    """A key and a certificate for this process alone: both as PEM, and the latter as DER, by which the host knows it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.utcnow()
    usage = x509.KeyUsage(True, False, True, False, True, True, False, False, False)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1)).not_valid_after(now + datetime.timedelta(days=3650))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
        .add_extension(x509.BasicConstraints(True, None), True).add_extension(usage, True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private, certificate.public_bytes(pem), certificate.public_bytes(serialization.Encoding.DER)
