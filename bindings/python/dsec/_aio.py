# SPDX-License-Identifier: MIT
"""Sandboxes and commands for asyncio: what waits is a descriptor in the running event loop. No threads."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
import stat
import weakref
from collections.abc import AsyncIterator, Iterator, Mapping
from types import TracebackType

from . import _errors, _options
from ._dsec import lib
from ._handle import PIECE, ExecHandle, Pace, SandboxHandle
from ._node import Node, default_node
from ._options import Command, Data, Path, Size
from ._result import Reason, Result
from ._sandbox import (
    Chunk,
    Owner,
    SandboxBase,
    SandboxStats,
    next_chunk,
    start_options,
    stats_of,
    stream_number,
    view_of,
)

READ_MAX = 1 << 30
ASK_SECONDS = 0.005  # between questions to a backend that has no descriptor to wait for


class Readiness:
    """Lets tasks wait until a descriptor can be read. It is in the event loop only while somebody waits: what nobody
    wants to read yet would else wake the loop again and again."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiters: list[asyncio.Future[None]] = []

    async def wait(self, seconds: float | None = None) -> None:
        """Until the descriptor can be read, at most so long."""
        loop = asyncio.get_running_loop()
        if self._waiters and self._loop is not loop:
            raise RuntimeError("a dsec object is used by two event loops at once")
        future: asyncio.Future[None] = loop.create_future()
        if not self._waiters:
            self._loop = loop
            loop.add_reader(self._fd, self.wake)
        self._waiters.append(future)
        timer = None if seconds is None else loop.call_later(seconds, _set, future)
        try:
            await future
        finally:
            if timer:
                timer.cancel()
            if future in self._waiters:
                self._waiters.remove(future)
                if not self._waiters and not loop.is_closed():
                    loop.remove_reader(self._fd)

    def wake(self) -> None:
        """All that wait look again; also called before the descriptor is closed."""
        waiters, self._waiters = self._waiters, []
        if waiters and self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
            for future in waiters:
                _set(future)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class AsyncExec(Owner):
    """A command that runs; dsec.Exec with await. Several tasks may use it at once, such as one for each stream."""

    _kind = "dsec.AsyncExec"
    _handle: ExecHandle

    def __init__(self, handle: ExecHandle, sandbox: AsyncSandbox, shared: bool = True) -> None:
        self._handle = handle
        self._sandbox = sandbox  # lives at least as long
        self._shared = shared  # several tasks may use it
        self._ready = Readiness(handle.fd)
        sandbox._execs.add(self)

    async def read(self, n: int = -1, stream: str = "stdout") -> bytes:
        """Waits for output and returns at most n bytes, b"" at the end; n below 0: all until the end. See
        dsec.Exec.read()."""
        number = stream_number(stream)
        if n == 0:
            return b""
        if n > 0:
            return await self._read_some(number, n)
        parts = []
        while data := await self._read_some(number, PIECE):
            parts.append(data)
            await asyncio.sleep(0)  # a command that writes without end must not hold up the loop
        return b"".join(parts)

    async def _read_some(self, number: int, n: int) -> bytes:
        pace = Pace()
        while (data := self._handle.read(number, n)) is None:
            await self._ready.wait(pace.step())
        return data

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        """Output as it comes, of both streams, until both have ended."""
        while True:
            pace = Pace()
            while (chunk := next_chunk(self._handle)) is None:
                await self._ready.wait(pace.step())
            if not chunk.data:
                return
            yield chunk
            await asyncio.sleep(0)  # a command that writes without end must not hold up the loop

    async def write(self, data: Data) -> None:
        """Gives all of it to the command's stdin. See dsec.Exec.write()."""
        view = view_of(data)
        while len(view):
            view = view[await self._write_some(view) :]

    async def _write_some(self, view: Data) -> int:
        pace = Pace()
        while (taken := self._handle.write(view)) is None:
            await self._ready.wait(pace.step())
        return taken

    async def close_stdin(self) -> None:
        """The command reads the end of its stdin. No error when it is closed already."""
        try:
            await self._write_some(b"")
        except _errors.Error as e:
            if e.errno != errno.EPIPE or isinstance(e, (_errors.SandboxLost, _errors.UnknownOutcome)):
                raise

    def resize(self, rows: int, cols: int) -> None:
        """Sets the size of the command's terminal."""
        self._handle.resize(*_options.terminal(rows, cols))

    def signal(self, signal: int) -> None:
        """Sends a signal to the command's process group; SIGKILL ends its whole process tree."""
        self._handle.signal(_options.signal(signal))

    def poll(self) -> Result | None:
        """Its result if it has ended, else None."""
        return self._ended() if self._handle.ended() else None

    def _ended(self) -> Result:
        assert self._handle.result is not None
        return self._handle.result.checked(False)

    async def wait(self, timeout: float | None = None) -> Result:
        """Waits for its end, at most `timeout` seconds (dsec.WaitTimeout: it runs on). See dsec.Exec.wait()."""
        if timeout is None or self._handle.ended():
            return await self._wait()
        try:
            return await asyncio.wait_for(self._wait(), max(0.0, timeout))
        except asyncio.TimeoutError:
            raise _errors.WaitTimeout(errno.ETIMEDOUT, "the command runs on", "exec") from None

    async def _wait(self) -> Result:
        pace = Pace()
        while not self._handle.ended():
            await self._ready.wait(pace.step() if self._shared else None)
        return self._ended()

    def close(self) -> None:
        """Ends the command with its whole process tree if it still runs, and releases the handle."""
        handle = self._handle
        handle.closing = handle.closing or handle.here  # tasks that wait see it when they are woken
        self._ready.wake()
        super().close()

    async def __aenter__(self) -> AsyncExec:
        self._handle.check()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None,
                        trace: TracebackType | None) -> None:
        self.close()


class AsyncFiles:
    """Whole files of a sandbox; dsec.Files with await. A cancelled write or put leaves a part of the file."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox

    async def read(self, path: Path) -> bytes:
        """The whole file. EFBIG over 1 GiB: use get()."""
        parts, n = [], 0
        with self._transfer(_read_options(path), path) as e:
            while data := await e.read(PIECE):
                parts.append(data)
                n += len(data)
                if n > READ_MAX:
                    raise _errors.Error(errno.EFBIG, f"{_quoted(path)} has more than 1 GiB", "file")
            await _finish(e, path)
        return b"".join(parts)

    async def read_text(self, path: Path, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The whole file as text; UnicodeDecodeError where it is none."""
        return (await self.read(path)).decode(encoding, errors)

    async def write(self, path: Path, data: Data, mode: int | None = None) -> None:
        """Makes the file, or replaces its contents; makes its parents. Text goes as UTF-8. mode: permission bits of a
        new file, None: 0o644."""
        opts = _options.transfer(lib.DSEC_EXEC_FILE_WRITE, path, _options.data("data", data),
                                 _options.permissions(mode))
        with self._transfer(opts, path) as e:
            await _finish(e, path)

    async def put(self, host_path: Path, path: Path) -> None:
        """Copies a regular file of this machine into the sandbox, a piece at a time, with its permission bits."""
        with open_regular(_options.path("host_path", host_path)) as fd:
            mode = stat.S_IMODE(os.fstat(fd).st_mode)
            opts = _options.transfer(lib.DSEC_EXEC_FILE_WRITE, path, b"", mode, lib.DSEC_EXEC_STDIN)
            with self._transfer(opts, path) as e:
                try:
                    while piece := os.read(fd, PIECE):
                        await e.write(piece)
                except _errors.Error as error:
                    if error.errno != errno.EPIPE or isinstance(error, (_errors.SandboxLost, _errors.UnknownOutcome)):
                        raise  # else the other side ended it: its result tells why
                await e.close_stdin()
                await _finish(e, path)

    async def get(self, path: Path, host_path: Path) -> None:
        """Copies a regular file of the sandbox, a piece at a time, to this machine: whole or not at all."""
        with new_file(_options.path("host_path", host_path)) as fd, self._transfer(_read_options(path), path) as e:
            while data := await e.read(PIECE):
                _write_all(fd, data, host_path)
            await _finish(e, path)

    @contextlib.contextmanager
    def _transfer(self, opts: _options.Exec, path: Path) -> Iterator[AsyncExec]:
        e = AsyncExec(self._sandbox._handle.start(opts), self._sandbox, shared=False)
        try:
            yield e
        finally:
            e.close()


def _read_options(path: Path) -> _options.Exec:
    return _options.transfer(lib.DSEC_EXEC_FILE_READ, path, flags=lib.DSEC_EXEC_STREAM)


def _quoted(path: Path) -> str:
    return f'"{os.fsdecode(path)}"'


async def _finish(e: AsyncExec, path: Path) -> None:
    """The result of a transfer, of which only its failure is of interest."""
    try:
        r = await e.wait()
    except _errors.Error as error:
        error.reason = f"{_quoted(path)}: {error.reason}"
        raise
    if r.reason is not Reason.EXITED or r.exit_code != 0:
        raise _errors.Error(errno.EIO, f"{_quoted(path)}: the transfer was ended (signal {r.signal})", "file")


@contextlib.contextmanager
def open_regular(path: bytes) -> Iterator[int]:
    """A regular file of this machine to read. Anything else is refused, and never waited for."""
    name = f"{_quoted(path)} on this machine"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as e:
        raise _errors.Error(e.errno or errno.EIO, f"open {name}", "file") from None
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise _errors.Error(code, f"{name} is not a regular file", "file")
        yield fd
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes, path: Path) -> None:
    view = memoryview(data)
    try:
        while len(view):
            view = view[os.write(fd, view):]
    except OSError as e:
        raise _errors.Error(e.errno or errno.EIO, f"write {_quoted(path)} on this machine", "file") from None


@contextlib.contextmanager
def new_file(path: bytes) -> Iterator[int]:
    """A file of this machine that appears under its name when the block ends without an error."""
    part = path + b"." + secrets.token_hex(8).encode()
    try:
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError as e:
        raise _errors.Error(e.errno or errno.EIO, f"create a file beside {_quoted(path)} on this machine",
                            "file") from None
    try:
        with open(fd, "wb", buffering=0):
            yield fd
        try:
            os.replace(part, path)
        except OSError as e:
            raise _errors.Error(e.errno or errno.EIO, f"rename to {_quoted(path)} on this machine", "file") from None
    except BaseException:
        os.unlink(part)
        raise


class AsyncSandbox(SandboxBase):
    """An isolated environment; dsec.Sandbox with await, on the running event loop. Made by AsyncSandbox.create() or
    attach(). Any number of tasks may use it at once. Cancelling a task ends the command that it waits for.

    Leaving its `async with` block stops it if this object made it and it is not retained, else it only lets go of it.
    """

    _kind = "dsec.AsyncSandbox"
    files: AsyncFiles
    _execs: weakref.WeakSet[AsyncExec]
    _ready: Readiness

    def __init__(self) -> None:
        raise TypeError("use await dsec.AsyncSandbox.create() or attach()")

    @classmethod
    def _new(cls, handle: SandboxHandle, node: Node) -> AsyncSandbox:
        self = cls.__new__(cls)
        self._opened(handle, node)
        self._execs = weakref.WeakSet()
        self._ready = Readiness(handle.fd)
        self.files = AsyncFiles(self)
        return self

    @classmethod
    async def create(cls, backend: str = "container", *, image: Path = "host", name: str | None = None,
                     run: str | None = None, cpu: float | None = None, memory: Size | None = None,
                     pids: int | None = None, disk: Size | None = None, disk_inodes: int | None = None,
                     network: str = "none", top: str = "memory", env: Mapping[str, str] | None = None,
                     workdir: Path | None = None, user: str | int | None = None, hostname: str | None = None,
                     retain: bool = False, limits_optional: bool = False, node: Node | None = None) -> AsyncSandbox:
        """Makes a sandbox; arguments and errors as of dsec.Sandbox.create(). Cancelled, it leaves nothing behind.

        The first use of the default node opens it, which takes some milliseconds without await.
        """
        opts = _options.sandbox(
            backend=backend, image=image, name=name, run=run, cpu=cpu, memory=memory, pids=pids, disk=disk,
            disk_inodes=disk_inodes, network=network, top=top, env=env, workdir=workdir, user=user, hostname=hostname,
            retain=retain, limits_optional=limits_optional)
        node = node or default_node()
        handle = node._handle.create(opts)
        try:
            await _until_done(handle, Readiness(handle.fd))
        except BaseException:
            handle.discard()
            raise
        return cls._new(handle, node)

    @classmethod
    async def attach(cls, id_or_name: str, *, node: Node | None = None) -> AsyncSandbox:
        """Opens a further handle on a sandbox that lives; see dsec.Sandbox.attach()."""
        node = node or default_node()
        return cls._new(node._handle.attach(_options.path("id_or_name", id_or_name)), node)

    async def run(self, command: Command, *, timeout: float | None = None, env: Mapping[str, str] | None = None,
                  workdir: Path | None = None, user: str | int | None = None, stdin: Data | None = None,
                  output_limit: Size | None = None, limit_kills: bool = False, clean_env: bool = False,
                  check: bool = False) -> Result:
        """Runs a command and waits for its end; arguments and errors as of dsec.Sandbox.run(). Cancelling ends it."""
        opts = _options.command(command, timeout=timeout, env=env, workdir=workdir, user=user, stdin=stdin,
                                output_limit=output_limit, limit_kills=limit_kills, clean_env=clean_env)
        e = AsyncExec(self._handle.start(opts), self, shared=False)
        try:
            await e._wait()
        finally:
            e.close()
        assert e._handle.result is not None
        return e._handle.result.checked(check)

    async def start(self, command: Command, *, stdin: bool | Data = False, tty: tuple[int, int] | None = None,
                    stream: bool = True, timeout: float | None = None, env: Mapping[str, str] | None = None,
                    workdir: Path | None = None, user: str | int | None = None, output_limit: Size | None = None,
                    limit_kills: bool = False, clean_env: bool = False) -> AsyncExec:
        """Starts a command and returns at once; arguments as of dsec.Sandbox.start()."""
        opts = start_options(command, stdin, tty=tty, stream=stream, timeout=timeout, env=env, workdir=workdir,
                             user=user, output_limit=output_limit, limit_kills=limit_kills, clean_env=clean_env)
        return AsyncExec(self._handle.start(opts), self)

    async def stats(self) -> SandboxStats:
        """What it uses now."""
        return stats_of(self._handle)

    async def stop(self) -> None:
        """Ends the sandbox, whoever made it; when this returns nothing is left. See dsec.Sandbox.stop()."""
        if self.closed and self._handle.here:
            return
        self._handle.begin_stop()
        await _until_done(self._handle, self._ready)
        self.close()

    def close(self) -> None:
        """Releases the handle, and ends what runs through it. The sandbox ends with it, without waiting for that, if
        this object made it and it is not retained."""
        handle = getattr(self, "_handle", None)
        if handle is not None and handle.here:
            handle.closing = True
            for e in list(self._execs):
                e.close()
            self._ready.wake()
        super().close()

    async def __aenter__(self) -> AsyncSandbox:
        self._handle.check()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None,
                        trace: TracebackType | None) -> None:
        try:
            if self._handle.ends and self._handle.here:
                await self.stop()
        finally:
            self.close()


async def _until_done(handle: SandboxHandle, ready: Readiness) -> None:
    """Completes a create or stop that was begun."""
    while not handle.wait(0):
        if handle.fd >= 0:
            await ready.wait()
        else:
            await asyncio.sleep(ASK_SECONDS)
