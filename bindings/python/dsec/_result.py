# SPDX-License-Identifier: MIT
"""What became of a command."""

from __future__ import annotations

import dataclasses
import enum
import errno
import signal as _signal
from typing import Any

from . import _errors
from ._dsec import ffi, lib


class Reason(enum.Enum):
    """Why a command ended. Exactly one holds."""

    EXITED = 1
    """It ended by itself, with `exit_code`."""
    SIGNALED = 2
    """It was killed by `signal`."""
    TIMEOUT = 3
    """Its time limit passed; its whole process tree was ended."""
    OOM = 4
    """The kernel ended it because the sandbox's memory limit was reached."""
    OUTPUT_LIMIT = 5
    """With limit_kills: it wrote more than output_limit."""
    LOST = 6
    """The sandbox ended under it."""
    UNKNOWN = 7
    """It was started, and its end was not seen."""

    @classmethod
    def _missing_(cls, value: object) -> Reason:
        return cls.UNKNOWN  # a newer library's: whatever it is, it is no result that we understand


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a command. Reason LOST and UNKNOWN are seen only in the `result` of the exception that says so."""

    reason: Reason
    exit_code: int
    """0 to 255 when it exited, else -1."""
    signal: int
    """1 to 64 when a signal ended it, else 0."""
    stdout_bytes: bytes
    """What was kept: all, or head and tail when cut. Empty in a stream."""
    stderr_bytes: bytes
    stdout_size: int
    """Bytes that were written, kept or not."""
    stderr_size: int
    stdout_cut: int | None
    """Where in stdout_bytes the tail begins when bytes are missing before it; None: nothing is missing."""
    stderr_cut: int | None
    seq: int
    """The command's number in its sandbox, from 1."""
    wall: float
    """Seconds from the start of the command to its end."""
    cpu: float
    """Seconds of user and system time of its process tree."""
    memory_peak: int
    """Bytes; the largest resident set among its processes."""

    @property
    def ok(self) -> bool:
        """It ended by itself with exit code 0."""
        return self.reason is Reason.EXITED and self.exit_code == 0

    @property
    def stdout(self) -> str:
        """stdout_bytes as UTF-8; bytes that are none become lone surrogates (encode with "surrogateescape")."""
        return self.stdout_bytes.decode("utf-8", "surrogateescape")

    @property
    def stderr(self) -> str:
        """stderr_bytes, in the same way."""
        return self.stderr_bytes.decode("utf-8", "surrogateescape")

    @property
    def truncated(self) -> bool:
        """Bytes are missing in stdout_bytes or stderr_bytes."""
        return self.stdout_cut is not None or self.stderr_cut is not None

    def describe(self) -> str:
        """How it ended, in a few words."""
        if self.reason is Reason.EXITED:
            return f"exited with {self.exit_code}"
        if self.reason is Reason.SIGNALED:
            try:
                return f"killed by {_signal.Signals(self.signal).name}"
            except ValueError:
                return f"killed by signal {self.signal}"
        return {
            Reason.TIMEOUT: "timed out",
            Reason.OOM: "out of memory",
            Reason.OUTPUT_LIMIT: "output limit reached",
            Reason.LOST: "the sandbox ended",
            Reason.UNKNOWN: "outcome unknown",
        }[self.reason]

    def checked(self, check: bool) -> Result:
        """Itself, unless it is no answer (LOST, UNKNOWN), or is not ok and `check` asks for that."""
        if self.reason is Reason.LOST:
            raise _errors.lost("the sandbox ended while a command ran in it", self)
        if self.reason is Reason.UNKNOWN:
            raise _errors.unknown("a command was started, and its end was not seen", self)
        if check and not self.ok:
            error = _errors.ExecError(errno.EIO, f"the command {self.describe()}{_last_line(self.stderr)}")
            error.result = self
            raise error
        return self


def _last_line(text: str) -> str:
    lines = text.encode("utf-8", "backslashreplace").decode().strip().splitlines()
    return f": {lines[-1][:200]}" if lines else ""


def new_result() -> Any:
    r = ffi.new("struct dsec_result *")
    r.sz = ffi.sizeof("struct dsec_result")
    return r


def take(r: Any) -> Result:
    """The Python object; the C structure's memory is released."""
    try:
        return Result(
            reason=Reason(r.reason),
            exit_code=r.exit_code,
            signal=r.signal,
            stdout_bytes=ffi.buffer(r.stdout_data, r.stdout_len)[:] if r.stdout_data else b"",
            stderr_bytes=ffi.buffer(r.stderr_data, r.stderr_len)[:] if r.stderr_data else b"",
            stdout_size=r.stdout_bytes,
            stderr_size=r.stderr_bytes,
            stdout_cut=r.stdout_head if r.flags & lib.DSEC_RESULT_STDOUT_CUT else None,
            stderr_cut=r.stderr_head if r.flags & lib.DSEC_RESULT_STDERR_CUT else None,
            seq=r.seq,
            wall=r.wall_ns / 1e9,
            cpu=r.cpu_ns / 1e9,
            memory_peak=r.memory_peak,
        )
    finally:
        lib.dsec_result_clear(r)
