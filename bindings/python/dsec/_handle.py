# SPDX-License-Identifier: MIT
"""Handles of the C library, guarded: by a lock (its calls release the GIL), against use after close and after fork.

A parent closes its children first, as the library asks for. Nothing here knows of blocking or of event loops, except
that what may wait long is done in slices, so that a signal handler such as Control-C's is not kept waiting.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import threading
import time
from typing import Any

from . import _errors, _options
from ._dsec import ffi, lib
from ._result import Result, new_result, take

SLICE_MS = 200  # of a wait on the main thread, which is where Python runs signal handlers
HELD_MAX = 64 << 20  # bytes of a stream that are kept here while another is asked for
PIECE = 64 << 10

STREAMS = {"stdout": lib.DSEC_STREAM_STDOUT, "stderr": lib.DSEC_STREAM_STDERR}
_BOTH = lib.DSEC_STREAM_STDOUT + lib.DSEC_STREAM_STDERR


def slice_ms() -> int:
    return SLICE_MS if threading.current_thread() is threading.main_thread() else -1


class Handle:
    """One C handle. `with handle as c` lends it to one thread; a second one waits."""

    def __init__(self, what: str, c: Any, parent: Handle | None = None) -> None:
        self.what = what
        self.owner = os.getpid()
        self.fd = -1
        self.lock = threading.Lock()
        self.parent = parent
        self.children: set[Handle] = set()  # strong: a handle is here until it is closed
        self.closing = False
        self.cut_off = False  # closed because its parent was
        self._c: Any = c
        (parent.children if parent else _roots).add(self)

    def __enter__(self) -> Any:
        self.check()
        self.lock.acquire()
        if self._c is None:
            self.lock.release()
            self.check()
            raise _errors.closed(self.what)
        return self._c

    def __exit__(self, *_: object) -> None:
        self.lock.release()

    @property
    def open(self) -> bool:
        return self._c is not None and not self.closing

    @property
    def here(self) -> bool:
        """It was opened by this process, and not by one that forked it."""
        return self.owner == os.getpid()

    def check(self) -> None:
        if not self.here:
            raise _errors.forked(self.what, self.owner)
        if not self.open:
            raise _errors.closed(self.what)

    def close(self) -> None:
        """Ends the handle; a call on another thread is made to return first. No error, also when done twice."""
        if not self.here:
            return  # see after_fork()
        self.cut_off = self.cut_off or (self._c is not None and self.parent is not None and self.parent.closing)
        self.closing = True
        self.interrupt()
        for child in list(self.children):
            child.close()
        with self.lock:
            c, self._c = self._c, None
            if c is not None:
                self.release(c)
        (self.parent.children if self.parent else _roots).discard(self)

    def interrupt(self) -> None:
        """Makes a call that another thread is in return soon."""

    def release(self, c: Any) -> None:
        raise NotImplementedError


_roots: set[Handle] = set()


def after_fork() -> None:
    """In a forked child. Its copies of descriptors would keep the parent's sandboxes and commands alive when the parent
    closes them or dies. The C handles themselves are left alone: another thread may have been inside one."""

    def forget(handle: Handle) -> None:
        for child in handle.children:
            forget(child)
        if handle.fd >= 0 and handle._c is not None:
            try:
                os.close(handle.fd)
            except OSError:
                pass  # it was being closed when the process forked
        handle.fd = -1
        handle._c = None

    for root in _roots:
        forget(root)
    _roots.clear()


os.register_at_fork(after_in_child=after_fork)


class NodeHandle(Handle):
    def __init__(self, opts: _options.Struct) -> None:
        out, err = ffi.new("struct dsec_node **"), _errors.new_error()
        r = lib.dsec_node_open(out, opts.c, err)
        if r < 0:
            _errors.throw(r, err)
        super().__init__("the node", out[0])

    def release(self, c: Any) -> None:
        lib.dsec_node_close(c)

    def create(self, opts: _options.Struct) -> SandboxHandle:
        """Begins one; wait() completes it."""
        out, err = ffi.new("struct dsec_sandbox **"), _errors.new_error()
        with self as c:
            r = lib.dsec_sandbox_create(c, opts.c, out, err)
            if r < 0:
                _errors.throw(r, err)
            return SandboxHandle(self, out[0], ends=not opts.c.flags & lib.DSEC_SANDBOX_RETAIN)

    def attach(self, name: bytes) -> SandboxHandle:
        out, err = ffi.new("struct dsec_sandbox **"), _errors.new_error()
        with self as c:
            r = lib.dsec_sandbox_attach(c, name, out, err)
            if r < 0:
                _errors.throw(r, err)
            return SandboxHandle(self, out[0], ends=False)


class SandboxHandle(Handle):
    def __init__(self, node: NodeHandle, c: Any, ends: bool) -> None:
        super().__init__("the sandbox", c, node)
        self.ends = ends  # the sandbox ends with this handle
        self.caps: int = lib.dsec_sandbox_caps(c)
        self.fd = lib.dsec_sandbox_fd(c)  # negative where the backend has none
        self.note_id()

    def note_id(self) -> None:
        self.id: str = ffi.string(lib.dsec_sandbox_id(self._c)).decode()
        self.what = f"sandbox {self.id}"

    def release(self, c: Any) -> None:
        lib.dsec_sandbox_close(c)

    def wait(self, timeout_ms: int) -> bool:
        """Whether a create or stop that was begun is done."""
        err = _errors.new_error()
        with self as c:
            r = lib.dsec_sandbox_wait(c, timeout_ms, err)
            if r == -errno.ETIMEDOUT:
                return False
            if r < 0:
                _errors.throw(r, err)
            self.note_id()  # one that was made ahead has an id of its own
            return True

    def begin_stop(self) -> None:
        err = _errors.new_error()
        with self as c:
            r = lib.dsec_sandbox_stop(c, lib.DSEC_SANDBOX_NOWAIT, err)
            if r < 0:
                _errors.throw(r, err)

    def discard(self) -> None:
        """Ends the sandbox without waiting, also a retained one: its create was not seen through."""
        try:
            self.begin_stop()
        except (OSError, ValueError):
            pass  # it never began, or is closed
        self.close()

    def start(self, opts: _options.Exec) -> ExecHandle:
        out, err = ffi.new("struct dsec_exec **"), _errors.new_error()
        with self as c:
            r = lib.dsec_exec_start(c, opts.argv, opts.c, out, err)
            if r < 0:
                _errors.throw(r, err)
            return ExecHandle(self, out[0], opts.c.flags)

    def stats(self) -> Any:
        s, err = ffi.new("struct dsec_sandbox_stats *"), _errors.new_error()
        s.sz = ffi.sizeof("struct dsec_sandbox_stats")
        with self as c:
            r = lib.dsec_sandbox_stats(c, s, err)
            if r < 0:
                _errors.throw(r, err)
        return s


class ExecHandle(Handle):
    """A command. No method waits, but wait() on request."""

    def __init__(self, sandbox: SandboxHandle, c: Any, flags: int) -> None:
        super().__init__("the command", c, sandbox)
        self.fd = lib.dsec_exec_fd(c)
        self.is_stream = bool(flags & lib.DSEC_EXEC_STREAM)
        self.result: Result | None = None
        self._held = {lib.DSEC_STREAM_STDOUT: bytearray(), lib.DSEC_STREAM_STDERR: bytearray()}
        self._buf: Any = None
        self._signal_lock = threading.Lock()  # signals may be sent while another thread is in a call

    def check(self) -> None:
        if self.cut_off and self.here:
            raise _errors.lost("the sandbox was closed under the command")
        super().check()

    def interrupt(self) -> None:
        if self.lock.locked() and self._c is not None:
            try:
                self.signal(signal.SIGKILL)
            except (OSError, ValueError):
                pass  # it ended meanwhile

    def release(self, c: Any) -> None:
        with self._signal_lock:
            lib.dsec_exec_close(c)

    def signal(self, number: int) -> None:
        err = _errors.new_error()
        if not self.here:
            raise _errors.forked(self.what, self.owner)
        with self._signal_lock:
            if self._c is None:
                raise _errors.closed(self.what)
            r = lib.dsec_exec_signal(self._c, number, err)
        if r < 0:
            _errors.throw(r, err, started=True)

    def resize(self, rows: int, cols: int) -> None:
        err = _errors.new_error()
        with self as c:
            r = lib.dsec_exec_resize(c, rows, cols, err)
        if r < 0:
            _errors.throw(r, err, started=True)

    def poll(self) -> bool:
        """Takes in what came; whether the command has ended."""
        err = _errors.new_error()
        with self as c:
            r = lib.dsec_exec_poll(c, err)
        if r < 0:
            _errors.throw(r, err, started=True)
        return bool(r)

    def wait(self, timeout_ms: int) -> bool:
        """Whether it has ended, after at most that time; then `result` is set. Would take a stream's output away: that
        has to use ended()."""
        if self.result:
            return True
        err, res = _errors.new_error(), new_result()
        with self as c:
            r = lib.dsec_exec_wait(c, timeout_ms, res, err)
        if self.closing:
            lib.dsec_result_clear(res)
            self.check()
        if r == -errno.ETIMEDOUT:
            return False
        if r < 0:
            _errors.throw(r, err, started=True)
        self.result = take(res)
        return True

    def read(self, stream: int, n: int) -> bytes | None:
        """At most n bytes; b"" at the end, None when there are none yet."""
        self._check_stream()
        with self as c:
            data = self._first(c, stream, n)
            if data is None and self._hold(c, _BOTH - stream):
                # The library takes in no more while the other stream fills its room, which it does no longer.
                data = self._first(c, stream, n)
            return data

    def read_any(self, n: int) -> tuple[int, bytes] | None:
        """The same of whichever stream has some; b"" when both are at their end."""
        self._check_stream()
        out, err = lib.DSEC_STREAM_STDOUT, lib.DSEC_STREAM_STDERR
        with self as c:
            ended = True
            for stream in out, err, out:  # asking for the one may take in what is of the other
                data = self._first(c, stream, n)
                if data:
                    return stream, data
                ended = ended and data is not None
            return (out, b"") if ended else None

    def _check_stream(self) -> None:
        if not self.is_stream:
            raise _errors.bad_option("stream", "the command was started with stream=False")

    def _first(self, c: Any, stream: int, n: int) -> bytes | None:
        held = self._held[stream]
        if not held:
            return self._take(c, stream, n)
        data = bytes(held[:n])
        del held[:n]
        return data

    def ended(self) -> bool:
        """Whether it has ended; then `result` is set. Output that came meanwhile is kept for read()."""
        if self.result is None and self.poll():
            return self.wait(0)
        if self.result is None and self.is_stream:
            with self as c:
                for stream in self._held:
                    self._hold(c, stream)
        return self.result is not None

    def _take(self, c: Any, stream: int, n: int) -> bytes | None:
        err = _errors.new_error()
        if self._buf is None:
            self._buf = ffi.new("char[]", PIECE)
        r = lib.dsec_exec_read(c, stream, self._buf, min(n, PIECE), err)
        if r == -errno.EAGAIN:
            return None
        if r < 0:
            _errors.throw(r, err, started=True)
        return bytes(ffi.buffer(self._buf, r)[:])

    def _hold(self, c: Any, stream: int) -> bool:
        held = self._held[stream]
        before = len(held)
        while data := self._take(c, stream, PIECE):
            held += data
            if len(held) > HELD_MAX:
                raise _errors.Error(errno.ENOBUFS, f"{HELD_MAX >> 20} MiB of output wait to be read", "exec")
        return len(held) > before

    def write(self, data: Any) -> int | None:
        """Gives bytes to stdin (none: closes it). How many were taken, or None when it takes none now."""
        err = _errors.new_error()
        with self as c:
            r = lib.dsec_exec_write(c, ffi.from_buffer(data), len(data), err)
            if r == -errno.EAGAIN:
                if self.is_stream:
                    for stream in self._held:
                        self._hold(c, stream)
                return None
        if r < 0:
            _errors.throw(r, err, started=True)
        return int(r)


def deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


class Pace:
    """How long one wait for a command's descriptor may last before looking again, unasked.

    A call takes in all that has come, also what somebody else waits for: output of the other stream, or leave to give
    more stdin, which another thread or task is at. Then the descriptor does not say so. That is rare, but must not be
    for ever; a command that is idle for long costs a look a second.
    """

    FIRST, FACTOR, LAST = 0.002, 8, 1.0

    def __init__(self) -> None:
        self._next = self.FIRST

    def step(self) -> float:
        now, self._next = self._next, min(self.LAST, self._next * self.FACTOR)
        return now

    def wait(self, fd: int, until: float | None = None) -> None:
        """Waits for the descriptor, at most until that time of time.monotonic(). Signal handlers run meanwhile."""
        seconds = self.step()
        if until is not None:
            seconds = max(0.0, min(seconds, until - time.monotonic()))
        p = select.poll()
        p.register(fd, select.POLLIN)
        p.poll(seconds * 1000)
