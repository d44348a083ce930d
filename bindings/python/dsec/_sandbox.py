# SPDX-License-Identifier: MIT
"""Sandboxes and commands for programs that wait; dsec._aio has the same for event loops."""

from __future__ import annotations

import dataclasses
import enum
import errno
import time
import warnings
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple

from . import _errors, _options
from ._dsec import ffi, lib
from ._handle import PIECE, STREAMS, ExecHandle, Handle, Pace, SandboxHandle, deadline, slice_ms
from ._node import Node, default_node
from ._options import Command, Data, Path, Size
from ._result import Result


class Capability(enum.Flag):
    """What a sandbox's backend can do; a call without its bit fails with ENOTSUP."""

    EXEC = 1 << 0
    FILES = 1 << 1
    TTY = 1 << 2
    LIMITS = 1 << 3
    STATS = 1 << 4
    ATTACH = 1 << 5
    FREEZE = 1 << 6
    FORK_DISK = 1 << 7
    FORK_MEMORY = 1 << 8
    NETWORK_HOST = 1 << 9


_ALL_CAPABILITIES = sum(c.value for c in Capability)


@dataclasses.dataclass(frozen=True)
class SandboxStats:
    """What a sandbox uses now; None: this machine cannot tell."""

    cpu: float | None
    """Seconds of CPU time since its creation."""
    memory: int | None
    """Bytes charged now."""
    memory_peak: int | None
    """Bytes, the highest so far."""
    pids: int | None
    """Processes and threads."""
    execs: int | None
    """Commands started."""
    execs_running: int | None
    oom_kills: int | None
    keeper_memory: int | None
    """Bytes of private memory of its keeper on this machine."""


def stats_of(handle: SandboxHandle) -> SandboxStats:
    s = handle.stats()

    def known(value: int) -> int | None:
        return None if value == 2**64 - 1 else value

    cpu = known(s.cpu_ns)
    return SandboxStats(None if cpu is None else cpu / 1e9, known(s.memory_bytes), known(s.memory_peak), known(s.pids),
                        known(s.execs), known(s.execs_running), known(s.oom_kills), known(s.keeper_memory))


class Chunk(NamedTuple):
    """A piece of output."""

    stream: str
    """"stdout" or "stderr"."""
    data: bytes


def stream_number(stream: str) -> int:
    return _options.choice("stream", stream, STREAMS)


def next_chunk(handle: ExecHandle) -> Chunk | None:
    """Of either stream; with no data when both have ended, None: nothing yet."""
    got = handle.read_any(PIECE)
    return None if got is None else Chunk("stderr" if got[0] == STREAMS["stderr"] else "stdout", got[1])


def view_of(data: Data) -> memoryview:
    return memoryview(_options.data("data", data))


class Owner:
    """What sandboxes and commands of both kinds share: a handle, and a net for those that were not closed."""

    _handle: Handle
    _kind = "object"

    @property
    def closed(self) -> bool:
        return not self._handle.open

    def close(self) -> None:
        """Releases the handle; a second time is no error."""
        self._handle.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None and handle.open and handle.here:
            handle.close()  # first: the warning may be made an exception
            warnings.warn(f"a {self._kind} was not closed: {handle.what}", ResourceWarning, stacklevel=2, source=self)

    def __repr__(self) -> str:
        return f"<{self._kind} {self._handle.what}{' (closed)' if self.closed else ''}>"


class Exec(Owner):
    """A command that runs. Close it, or use it in a `with` block: closing ends it with its whole process tree.

    One object may be used by several threads: a second call waits for the first, but signal() does not. Methods raise
    dsec.SandboxLost when the sandbox ended under the command, dsec.UnknownOutcome when its keeper died, ValueError
    when the object is closed.
    """

    _kind = "dsec.Exec"
    _handle: ExecHandle

    def __init__(self, handle: ExecHandle, sandbox: Sandbox) -> None:
        self._handle = handle
        self._sandbox = sandbox  # lives at least as long

    def read(self, n: int = -1, stream: str = "stdout") -> bytes:
        """Waits for output of "stdout" or "stderr" and returns at most n bytes, b"" at the end; n below 0: all until
        the end.

        What arrives on the other stream meanwhile is kept, up to 64 MiB; beyond, ENOBUFS: read both. Of a terminal all
        output is stdout. Only with stream=True.
        """
        number = stream_number(stream)
        if n == 0:
            return b""
        if n > 0:
            return self._read_some(number, n)
        parts = []
        while data := self._read_some(number, PIECE):
            parts.append(data)
        return b"".join(parts)

    def _read_some(self, number: int, n: int) -> bytes:
        pace = Pace()
        while (data := self._handle.read(number, n)) is None:
            pace.wait(self._handle.fd)
        return data

    def __iter__(self) -> Iterator[Chunk]:
        """Output as it comes, of both streams, until both have ended."""
        while True:
            pace = Pace()
            while (chunk := next_chunk(self._handle)) is None:
                pace.wait(self._handle.fd)
            if not chunk.data:
                return
            yield chunk

    def write(self, data: Data) -> None:
        """Gives all of it to the command's stdin, waiting while the command does not read; text goes as UTF-8.

        Errors: dsec.Error with EPIPE (stdin is closed, or the command has ended), EINVAL (started without stdin=True).
        """
        view = view_of(data)
        while len(view):
            view = view[self._write_some(view) :]

    def _write_some(self, view: Data) -> int:
        pace = Pace()
        while (taken := self._handle.write(view)) is None:
            pace.wait(self._handle.fd)
        return taken

    def close_stdin(self) -> None:
        """The command reads the end of its stdin. No error when it is closed already."""
        try:
            self._write_some(b"")
        except _errors.Error as e:
            if e.errno != errno.EPIPE or isinstance(e, (_errors.SandboxLost, _errors.UnknownOutcome)):
                raise

    def resize(self, rows: int, cols: int) -> None:
        """Sets the size of the command's terminal."""
        self._handle.resize(*_options.terminal(rows, cols))

    def signal(self, signal: int) -> None:
        """Sends a signal, 1 to 64, to the command's process group; SIGKILL ends its whole process tree.

        Errors: dsec.Error with EPIPE (it has ended).
        """
        self._handle.signal(_options.signal(signal))

    def poll(self) -> Result | None:
        """Its result if it has ended, else None. Does not wait."""
        return _result(self._handle) if self._handle.ended() else None

    def wait(self, timeout: float | None = None) -> Result:
        """Waits for its end, at most `timeout` seconds; every further call gives the same result.

        Of a stream the result has no output: what was not read stays for read(), up to 64 MiB each; beyond, ENOBUFS.
        Errors: dsec.WaitTimeout (also a TimeoutError; the command runs on), dsec.Error with step "exec" (it could not
        be executed: ENOENT, EACCES, ENOEXEC, E2BIG).
        """
        until = deadline(None if timeout is None else max(0.0, float(timeout)))
        pace = Pace()
        while not self._handle.ended():
            if until is not None and time.monotonic() >= until:
                raise _errors.WaitTimeout(errno.ETIMEDOUT, "the command runs on", "exec")
            pace.wait(self._handle.fd, until)
        return _result(self._handle)

    def __enter__(self) -> Exec:
        self._handle.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


def _result(handle: ExecHandle) -> Result:
    assert handle.result is not None
    return handle.result.checked(False)


class Files:
    """Whole files of a sandbox. Paths are absolute, or relative to its working directory; they are resolved inside it.

    Errors: dsec.Error with ENOENT, EISDIR, EACCES, EINVAL (a FIFO, socket or device), ENOSPC and so on, step "file".
    """

    def __init__(self, handle: SandboxHandle) -> None:
        self._handle = handle

    def read(self, path: Path) -> bytes:
        """The whole file. EFBIG over 1 GiB: use get()."""
        where = _options.path("path", path)
        data, n, err = ffi.new("void **"), ffi.new("size_t *"), _errors.new_error()
        with self._handle as c:
            r = lib.dsec_sandbox_read(c, where, data, n, err)
        if r < 0:
            _errors.throw(r, err, started=True)
        try:
            return bytes(ffi.buffer(data[0], n[0])[:])
        finally:
            lib.free(data[0])

    def read_text(self, path: Path, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The whole file as text; UnicodeDecodeError where it is none."""
        return self.read(path).decode(encoding, errors)

    def write(self, path: Path, data: Data, mode: int | None = None) -> None:
        """Makes the file, or replaces its contents; makes its parents. Text goes as UTF-8. mode: permission bits of a
        new file, None: 0o644."""
        where, raw, err = _options.path("path", path), _options.data("data", data), _errors.new_error()
        bits = _options.permissions(mode)
        with self._handle as c:
            r = lib.dsec_sandbox_write(c, where, ffi.from_buffer(raw), len(raw), bits, err)
        if r < 0:
            _errors.throw(r, err, started=True)

    def put(self, host_path: Path, path: Path) -> None:
        """Copies a regular file of this machine, of any size, into the sandbox, with its permission bits."""
        self._copy(lib.dsec_sandbox_put, _options.path("host_path", host_path), _options.path("path", path))

    def get(self, path: Path, host_path: Path) -> None:
        """Copies a regular file of the sandbox, of any size, to this machine: whole or not at all."""
        self._copy(lib.dsec_sandbox_get, _options.path("path", path), _options.path("host_path", host_path))

    def _copy(self, call: Any, source: bytes, target: bytes) -> None:
        err = _errors.new_error()
        with self._handle as c:
            r = call(c, source, target, err)
        if r < 0:
            _errors.throw(r, err, started=True)


class SandboxBase(Owner):
    """What does not wait, and so is the same in both kinds of sandbox."""

    _handle: SandboxHandle

    @property
    def id(self) -> str:
        """"dsec-" and 20 characters."""
        return self._handle.id

    @property
    def capabilities(self) -> Capability:
        """What its backend can do."""
        return Capability(self._handle.caps & _ALL_CAPABILITIES)

    def _opened(self, handle: SandboxHandle, node: Node) -> None:
        self._handle = handle
        self._node = node  # lives at least as long


class Sandbox(SandboxBase):
    """An isolated environment. Made by Sandbox.create() or Sandbox.attach().

    Leaving its `with` block stops it if this object made it and it is not retained, else it only lets go of it. One
    object may be used by several threads: commands of all of them run at the same time, other calls wait for each
    other. In a forked child it is of no use (ECHILD): attach or create there.

    Methods raise dsec.Error; dsec.OptionError (also a ValueError) for a bad argument, by name; dsec.SandboxLost when
    the sandbox is gone; ValueError when the object is closed.
    """

    _kind = "dsec.Sandbox"
    files: Files

    def __init__(self) -> None:
        raise TypeError("use dsec.Sandbox.create() or dsec.Sandbox.attach()")

    @classmethod
    def _new(cls, handle: SandboxHandle, node: Node) -> Sandbox:
        self = cls.__new__(cls)
        self._opened(handle, node)
        self.files = Files(handle)
        return self

    @classmethod
    def create(cls, backend: str = "container", *, image: Path = "host", name: str | None = None,
               run: str | None = None, cpu: float | None = None, memory: Size | None = None, pids: int | None = None,
               disk: Size | None = None, disk_inodes: int | None = None, network: str = "none", top: str = "memory",
               env: Mapping[str, str] | None = None, workdir: Path | None = None, user: str | int | None = None,
               hostname: str | None = None, retain: bool = False, limits_optional: bool = False,
               node: Node | None = None) -> Sandbox:
        """Makes a sandbox and waits until it takes commands.

        backend: "container", "null", "function", "microvm" or "fullvm".
        image: "host", or the path of a directory that holds a root file system.
        name, run: [a-z0-9][a-z0-9._-]{0,62}; a name is unique on the node; run is the training run it belongs to.
        cpu: CPUs, such as 0.5 or 2. memory, disk: bytes, or text such as "512M", "2G"; disk is the size of the
        writable top, by default 1 GiB with top="memory". pids: processes and threads, by default 1024. disk_inodes:
        files in the writable top. None: no limit, but for those defaults.
        network: "none" (a loopback interface only) or "host" (no isolation).
        top: where writes go: "memory" (counts as the sandbox's memory) or "disk".
        env: variables of every command. workdir: absolute, made if missing, by default /root. user: "root", uid, or
        "uid:gid".
        retain: it lives on when this object is closed or this process ends, until it is stopped.
        limits_optional: go on without a limit that this machine cannot enforce, instead of ENOTSUP.
        node: by default the process's own.

        Errors: dsec.OptionError; dsec.Error with EEXIST (the name is in use), ENOENT, ENOTDIR (the image), ENOTSUP
        (what this backend, kernel or user cannot do), EAGAIN (no room now: `retry` is set), EACCES, EPERM, ENOSPC.
        """
        opts = _options.sandbox(
            backend=backend, image=image, name=name, run=run, cpu=cpu, memory=memory, pids=pids, disk=disk,
            disk_inodes=disk_inodes, network=network, top=top, env=env, workdir=workdir, user=user, hostname=hostname,
            retain=retain, limits_optional=limits_optional)
        node = node or default_node()
        handle = node._handle.create(opts)
        try:
            while not handle.wait(slice_ms()):
                pass
        except BaseException:
            handle.discard()
            raise
        return cls._new(handle, node)

    @classmethod
    def attach(cls, id_or_name: str, *, node: Node | None = None) -> Sandbox:
        """Opens a further handle on a sandbox that lives, made by any process of the same user.

        Errors: dsec.Error with ENOENT (there is none), dsec.OptionError (neither an id nor a name).
        """
        node = node or default_node()
        return cls._new(node._handle.attach(_options.path("id_or_name", id_or_name)), node)

    def run(self, command: Command, *, timeout: float | None = None, env: Mapping[str, str] | None = None,
            workdir: Path | None = None, user: str | int | None = None, stdin: Data | None = None,
            output_limit: Size | None = None, limit_kills: bool = False, clean_env: bool = False,
            check: bool = False) -> Result:
        """Runs a command and waits for its end. One that fails, dies or times out is a Result, not an error.

        command: text goes through the sandbox's /bin/sh, a list does not.
        timeout: seconds; then its whole process tree is ended, and the result comes at that moment.
        env: added to the sandbox's, or with clean_env all there is. stdin: all of its input; without, it reads the end.
        output_limit: bytes kept of each stream, half head and half tail; by default 8 MiB. limit_kills: writing more
        ends the command.
        check: raise dsec.ExecError unless it exits with 0.

        Errors: dsec.Error with step "exec" (it could not be executed: ENOENT, EACCES, ENOEXEC, E2BIG);
        dsec.SandboxLost (the sandbox ended), dsec.UnknownOutcome (its end was not seen): their `result` has what is
        known.
        """
        opts = _options.command(command, timeout=timeout, env=env, workdir=workdir, user=user, stdin=stdin,
                                output_limit=output_limit, limit_kills=limit_kills, clean_env=clean_env)
        handle = self._handle.start(opts)
        try:
            while not handle.wait(slice_ms()):
                pass
        finally:
            handle.close()
        assert handle.result is not None
        return handle.result.checked(check)

    def start(self, command: Command, *, stdin: bool | Data = False, tty: tuple[int, int] | None = None,
              stream: bool = True, timeout: float | None = None, env: Mapping[str, str] | None = None,
              workdir: Path | None = None, user: str | int | None = None, output_limit: Size | None = None,
              limit_kills: bool = False, clean_env: bool = False) -> Exec:
        """Starts a command and returns at once; any number may run in one sandbox.

        stdin: True keeps it open for Exec.write(); data is all of it. tty: (rows, cols) of a terminal for all three
        streams; stdin is then open. stream: output goes through Exec.read(), held back while nobody reads; False: it
        is collected for the result, as in run(). The rest as in run(); a command that cannot be executed shows in
        Exec.wait().
        """
        opts = start_options(command, stdin, tty=tty, stream=stream, timeout=timeout, env=env, workdir=workdir,
                             user=user, output_limit=output_limit, limit_kills=limit_kills, clean_env=clean_env)
        return Exec(self._handle.start(opts), self)

    def stats(self) -> SandboxStats:
        """What it uses now."""
        return stats_of(self._handle)

    def stop(self) -> None:
        """Ends the sandbox, whoever made it, and all that it kept on this machine; when this returns nothing is left.

        Commands that run raise dsec.SandboxLost. The object is closed then. Stopping a closed one does nothing.
        """
        if self.closed and self._handle.here:
            return
        self._handle.begin_stop()
        while not self._handle.wait(slice_ms()):
            pass
        self._handle.close()

    def close(self) -> None:
        """Releases the handle, and ends what runs through it. The sandbox ends with it, without waiting for that, if
        this object made it and it is not retained. A second time is no error."""
        super().close()

    def __enter__(self) -> Sandbox:
        self._handle.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        try:
            if self._handle.ends and self._handle.here:
                self.stop()
        finally:
            self.close()


def start_options(command: Command, stdin: bool | Data, **rest: Any) -> _options.Exec:
    if isinstance(stdin, bool):
        return _options.command(command, keep_stdin=stdin, **rest)
    return _options.command(command, stdin=stdin, **rest)
