# SPDX-License-Identifier: MIT
"""Arguments in Python's words become the C library's option structures. What is wrong is refused here, by its name."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Union

from ._dsec import ffi, lib
from ._errors import bad_option

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Command = Union[str, Sequence[Union[str, bytes]]]
Data = Union[str, bytes, bytearray, memoryview]
Size = Union[int, str]

_SIZE = re.compile(r"([0-9]{1,20})(?:\.([0-9]{1,20}))?\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_NETWORKS = {"none": lib.DSEC_NETWORK_NONE, "host": lib.DSEC_NETWORK_HOST}
_TOPS = {"memory": lib.DSEC_TOP_MEMORY, "disk": lib.DSEC_TOP_DISK}
_UINT64_MAX = 2**64 - 1
_CPU_MAX = 1e15  # whose thousandths fit into 64 bits
_TIMEOUT_MAX = 2**62 / 1e3 / 2  # seconds; the library's own limit


def text(field: str, value: object) -> bytes:
    """A string for C: UTF-8, and what os.fsdecode() made of other bytes comes back as those bytes."""
    if isinstance(value, str):
        try:
            raw = value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise bad_option(field, f"{value!r} cannot be encoded as UTF-8") from None
    elif isinstance(value, bytes):
        raw = value
    else:
        raise TypeError(f"{field}: expected str, not {type(value).__name__}")
    if b"\0" in raw:
        raise bad_option(field, f"{value!r} has a NUL character")
    return raw


def path(field: str, value: Path) -> bytes:
    raw = text(field, os.fspath(value) if isinstance(value, os.PathLike) else value)
    if not raw:
        raise bad_option(field, "is empty")
    return raw


def number(field: str, value: object) -> int:
    """A positive integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{field}: expected int, not {type(value).__name__}")
    if not 0 < value <= _UINT64_MAX:
        raise bad_option(field, f"{value} is not a positive number of 64 bits (None: the default)")
    return value


def size(field: str, value: object) -> int:
    """Bytes: a number, or text such as "512M", "2G", "1.5 GiB" (powers of 1024)."""
    if not isinstance(value, str):
        return number(field, value)
    found = _SIZE.fullmatch(value.strip())
    if not found:
        raise bad_option(field, f'{value!r} is not a size such as "512M" or "2G"')
    whole, part, unit = found[1], found[2] or "0", 1 << _UNITS[found[3].lower()]
    return number(field, int(whole) * unit + int(part) * unit // 10 ** len(part))  # a float would round


def real(field: str, value: object) -> float:
    """A positive finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{field}: expected float, not {type(value).__name__}")
    try:
        f = float(value)
    except OverflowError:  # of an int
        f = math.inf
    if not (math.isfinite(f) and f > 0):
        raise bad_option(field, f"{f} is not above 0 and finite (None: no limit)")
    return f


def milliseconds(field: str, value: object) -> int:
    seconds = real(field, value)
    if seconds > _TIMEOUT_MAX:
        raise bad_option(field, f"{seconds} seconds are too long (None: no limit)")
    return max(1, math.ceil(seconds * 1000))


def choice(field: str, value: object, table: Mapping[str, int]) -> int:
    if not isinstance(value, str):
        raise TypeError(f"{field}: expected str, not {type(value).__name__}")
    if value not in table:
        raise bad_option(field, f"{value!r} is not one of {', '.join(map(repr, table))}")
    return table[value]


def signal(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"signal: expected int, not {type(value).__name__}")
    if not 1 <= value <= 64:
        raise bad_option("signal", f"{value} is not 1 to 64")
    return int(value)


def terminal(rows: object, cols: object) -> tuple[int, int]:
    for field, value in ("rows", rows), ("cols", cols):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{field}: expected int, not {type(value).__name__}")
        if not 1 <= value <= 65535:
            raise bad_option(field, f"{value} is not 1 to 65535")
    assert isinstance(rows, int) and isinstance(cols, int)
    return rows, cols


def data(field: str, value: object) -> bytes | bytearray | memoryview:
    """Bytes that go into the sandbox. Text goes as UTF-8."""
    if isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise bad_option(field, "text that cannot be encoded as UTF-8") from None
    if isinstance(value, (bytes, bytearray)):
        return value
    if isinstance(value, memoryview):
        # One dimension of bytes, so that its length is the number of bytes.
        return value if value.c_contiguous and value.format == "B" and value.ndim == 1 else value.tobytes()
    raise TypeError(f"{field}: expected str or bytes, not {type(value).__name__}")


class Struct:
    """An option structure, and whatever its pointers point to, for as long as this object lives."""

    def __init__(self, name: str) -> None:
        self.c: Any = ffi.new(f"struct {name} *")
        self.c.sz = ffi.sizeof(f"struct {name}")
        self._kept: list[Any] = []

    def string(self, raw: bytes) -> Any:
        p = ffi.new("char[]", raw)
        self._kept.append(p)
        return p

    def strings(self, raw: Sequence[bytes]) -> Any:
        p = ffi.new("const char *[]", [*map(self.string, raw), ffi.NULL])
        self._kept.append(p)
        return p

    def set_text(self, field: str, value: object) -> None:
        if value is not None:
            setattr(self.c, field, self.string(text(field, value)))

    def set_env(self, env: object) -> None:
        if env is None:
            return
        if not isinstance(env, Mapping):
            raise TypeError(f"env: expected a mapping, not {type(env).__name__}")
        entries = []
        for name, value in env.items():
            raw = text("env", name)
            if not raw or b"=" in raw:
                raise bad_option("env", f"{name!r} is no name of a variable")
            entries.append(raw + b"=" + text(f"env[{name!r}]", value))
        self.c.env = self.strings(entries)

    def set_data(self, raw: bytes | bytearray | memoryview) -> None:
        if len(raw):
            view = ffi.from_buffer(raw)  # no copy
            self._kept.append(view)
            self.c.stdin_data = view
            self.c.stdin_len = len(raw)


def node(root: Path | None, images: Path | None) -> Struct:
    s = Struct("dsec_node_opts")
    for field, value in ("root", root), ("images", images):
        if value is not None:
            setattr(s.c, field, s.string(path(field, value)))
    return s


def sandbox(*, backend: str, image: Path, name: str | None, run: str | None, cpu: float | None, memory: Size | None,
            pids: int | None, disk: Size | None, disk_inodes: int | None, network: str, top: str,
            env: Mapping[str, str] | None, workdir: Path | None, user: str | int | None, hostname: str | None,
            retain: bool, limits_optional: bool) -> Struct:
    s = Struct("dsec_sandbox_opts")
    s.set_text("backend", backend)
    s.c.image = s.string(path("image", image))
    for field, value in ("name", name), ("run", run), ("hostname", hostname):
        s.set_text(field, value)
    _place(s, workdir, user)
    s.set_env(env)
    if cpu is not None:
        # What is out of all bounds is left to the library to refuse.
        s.c.cpu_millis = max(1, round(min(real("cpu", cpu), _CPU_MAX) * 1000))
    if memory is not None:
        s.c.memory_bytes = size("memory", memory)
    if pids is not None:
        s.c.pids = number("pids", pids)
    if disk is not None:
        s.c.disk_bytes = size("disk", disk)
    if disk_inodes is not None:
        s.c.disk_inodes = number("disk_inodes", disk_inodes)
    s.c.network = choice("network", network, _NETWORKS)
    s.c.top = choice("top", top, _TOPS)
    s.c.flags = lib.DSEC_SANDBOX_NOWAIT
    if retain:
        s.c.flags |= lib.DSEC_SANDBOX_RETAIN
    if limits_optional:
        s.c.flags |= lib.DSEC_SANDBOX_LIMITS_OPTIONAL
    return s


def _place(s: Struct, workdir: Path | None, user: str | int | None) -> None:
    if workdir is not None:
        s.c.workdir = s.string(path("workdir", workdir))
    if isinstance(user, int) and not isinstance(user, bool):
        user = str(user)
    s.set_text("user", user)


class Exec(Struct):
    """Options of a command, and the command."""

    argv: Any

    def __init__(self) -> None:
        super().__init__("dsec_exec_opts")


def command(cmd: Command, *, timeout: float | None, env: Mapping[str, str] | None, workdir: Path | None,
            user: str | int | None, stdin: Data | None = None, output_limit: Size | None = None,
            limit_kills: bool = False, clean_env: bool = False, keep_stdin: bool = False,
            tty: tuple[int, int] | None = None, stream: bool = False) -> Exec:
    s = Exec()
    s.argv = s.strings(_words(cmd))
    _place(s, workdir, user)
    s.set_env(env)
    if timeout is not None:
        s.c.timeout_ms = milliseconds("timeout", timeout)
    if output_limit is not None:
        s.c.output_limit = size("output_limit", output_limit)
    if stdin is not None:
        s.set_data(data("stdin", stdin))
    if tty is not None:
        if not isinstance(tty, tuple) or len(tty) != 2:
            raise TypeError("tty: expected (rows, cols)")
        s.c.tty_rows, s.c.tty_cols = terminal(*tty)
    if stream and limit_kills:
        raise bad_option("limit_kills", "a stream has no limit that could kill: use stream=False")
    flags = ((lib.DSEC_EXEC_LIMIT_KILLS, limit_kills), (lib.DSEC_EXEC_CLEAN_ENV, clean_env),
             (lib.DSEC_EXEC_STDIN, keep_stdin), (lib.DSEC_EXEC_TTY, tty is not None),
             (lib.DSEC_EXEC_STREAM, stream))
    for bit, on in flags:
        s.c.flags |= bit if on else 0
    return s


def _words(cmd: Command) -> list[bytes]:
    if isinstance(cmd, str):
        return [b"/bin/sh", b"-c", text("command", cmd)]
    if isinstance(cmd, bytes) or not isinstance(cmd, Sequence):
        raise TypeError(f"command: expected str or a list of str, not {type(cmd).__name__}")
    if not cmd:
        raise bad_option("command", "is empty")
    return [text(f"command[{i}]", word) for i, word in enumerate(cmd)]


def transfer(kind: int, where: Path, raw: bytes | bytearray | memoryview = b"", mode: int = 0, flags: int = 0) -> Exec:
    """A file read or write, which to the library is a command of another kind."""
    s = Exec()
    s.argv = s.strings([path("path", where)])
    s.c.kind = kind
    s.c.mode = mode
    s.c.flags = flags
    s.set_data(raw)
    return s


def permissions(mode: object) -> int:
    if mode is None:
        return 0  # the default of the library
    if isinstance(mode, bool) or not isinstance(mode, int):
        raise TypeError(f"mode: expected int, not {type(mode).__name__}")
    if not 0 < mode <= 0o7777:
        raise bad_option("mode", f"{mode:#o} is not a set of permission bits")
    return mode
