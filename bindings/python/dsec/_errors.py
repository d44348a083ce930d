# SPDX-License-Identifier: MIT
"""What can go wrong, and the one place where an error of the C library becomes an exception."""

from __future__ import annotations

import errno as _errno
import os
from typing import TYPE_CHECKING, Any, NoReturn

from ._dsec import ffi, lib

if TYPE_CHECKING:
    from ._result import Result

# Fields of the C structures that have another name in Python.
_FIELDS = {
    "cpu_millis": "cpu",
    "memory_bytes": "memory",
    "disk_bytes": "disk",
    "timeout_ms": "timeout",
    "argv": "command",
    "stdin_data": "stdin",
}


class Error(OSError):
    """A call of dsec failed.

    errno: positive, as in any OSError.
    step: where it was first seen, such as "options", "image", "cgroup", "mount", "exec", "file" or "keeper".
    reason: one line that names the call and the object, without the words of the errno.
    retry: nothing was started: the same call may be repeated, now or when there is room again.
    """

    step: str
    reason: str
    retry: bool

    def __init__(self, errno: int, reason: str, step: str = "none", retry: bool = False) -> None:
        super().__init__(errno, os.strerror(errno))
        self.step = step
        self.reason = reason
        self.retry = retry

    def __str__(self) -> str:
        return f"{self.reason}: {self.strerror}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.errno, self.reason, self.step, self.retry, _result_of(self))


class OptionError(Error, ValueError):
    """An argument was refused before anything was done; the text names it. Also a ValueError."""

    def __init__(self, errno: int, reason: str, step: str = "options", retry: bool = False) -> None:
        super().__init__(errno, reason, step, retry)

    def __str__(self) -> str:
        return self.reason


class WaitTimeout(Error, TimeoutError):
    """A wait() with a timeout ended before the command did, which runs on. Also a TimeoutError."""


class _WithResult(Error):
    """An error about a command, with what is known of it."""

    result: Result | None = None


class ExecError(_WithResult):
    """With check=True: the command did not end with exit code 0. `result` tells how it did."""

    def __init__(self, errno: int, reason: str, step: str = "exec", retry: bool = False) -> None:
        super().__init__(errno, reason, step, retry)

    def __str__(self) -> str:
        return self.reason


class SandboxLost(_WithResult):
    """The sandbox is gone. With `retry` the command was not started; else it was, and `result` has what was seen."""


class UnknownOutcome(_WithResult):
    """The command was started and its end was not seen. It may have done all, part or nothing of its work."""


def _result_of(error: Error) -> Result | None:
    return error.result if isinstance(error, _WithResult) else None


def _rebuild(cls: type[Error], errno: int, reason: str, step: str, retry: bool, result: Result | None) -> Error:
    """For pickle: exceptions cross process borders in trainers."""
    error = cls(errno, reason, step, retry)
    if isinstance(error, _WithResult):
        error.result = result
    return error


def bad_option(field: str, why: str) -> OptionError:
    return OptionError(_errno.EINVAL, f"{field}: {why}")


def closed(what: str) -> ValueError:
    return ValueError(f"{what} is closed")


def forked(what: str, owner: int) -> Error:
    return Error(_errno.ECHILD, f"{what} belongs to process {owner}, which forked this one: open one here", "node")


def lost(reason: str, result: Result | None = None, step: str = "keeper", retry: bool = False) -> SandboxLost:
    error = SandboxLost(_errno.EPIPE, reason, step, retry)
    error.result = result
    return error


def unknown(reason: str, result: Result | None = None, step: str = "keeper") -> UnknownOutcome:
    error = UnknownOutcome(_errno.EPIPE, reason, step)
    error.result = result
    return error


def new_error() -> Any:
    """Room for the C library's error."""
    return ffi.new("struct dsec_error *")


def _python_words(text: str) -> str:
    field, colon, rest = text.partition(": ")
    if colon and field in _FIELDS:
        text = f"{_FIELDS[field]}: {rest}"
    for name in "DSEC_TOP_DISK", "DSEC_TOP_MEMORY":
        text = text.replace(name, f'top="{name[9:].lower()}"')
    return text


def make(code: int, err: Any, *, started: bool = False) -> Error:
    """The exception for a negative return value. started: a command had been handed over when the call failed."""
    text = ffi.string(err.text).decode("utf-8", "replace")
    step = ffi.string(lib.dsec_step_name(err.step)).decode()
    retry = bool(err.flags & lib.DSEC_ERROR_RETRY)
    if code == -_errno.EINVAL and err.step == lib.DSEC_STEP_OPTIONS:
        return OptionError(-code, _python_words(text))
    if code == -_errno.EPIPE and err.step == lib.DSEC_STEP_KEEPER:
        return unknown(text) if started and not retry else lost(text, retry=retry)
    return Error(-code, _python_words(text) if err.step == lib.DSEC_STEP_OPTIONS else text, step, retry)


def throw(code: int, err: Any, *, started: bool = False) -> NoReturn:
    raise make(code, err, started=started)
