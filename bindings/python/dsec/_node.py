# SPDX-License-Identifier: MIT
"""The node: this machine as dsec sees it."""

from __future__ import annotations

import atexit
import dataclasses
import enum
import os
import threading
import warnings
from types import TracebackType
from typing import Any, List  # in the class, `list` is a method

from . import _errors, _options
from ._dsec import ffi, lib
from ._handle import NodeHandle


class State(enum.Enum):
    """What a sandbox does, as its state directory tells."""

    STARTING = 1
    RUNNING = 2
    PAUSED = 3
    STOPPED = 4
    LOST = 5
    """Its keeper is dead; Node.reap() removes what is left."""


@dataclasses.dataclass(frozen=True)
class SandboxInfo:
    """One sandbox of a node."""

    id: str
    name: str | None
    run: str | None
    backend: str
    image: str
    state: State
    keeper_pid: int
    """For display only: it may be recycled."""
    created: float
    """Seconds since 1970."""


@dataclasses.dataclass(frozen=True)
class NodeStats:
    """Counters since the node was made, of all processes, and gauges."""

    live: int
    created: int
    create_failed: int
    execs: int
    reaped: int
    ids_free: int
    """Ranges of user ids that are free; 0 where sandboxes have none of their own."""


@dataclasses.dataclass(frozen=True)
class ProbeItem:
    """One thing that this kernel and user can or cannot do."""

    name: str
    available: bool
    why: str
    effect: str
    """What follows for sandboxes, and what to change; empty where nothing does."""


def _text(chars: Any) -> str:
    return str(ffi.string(chars).decode("utf-8", "replace"))


class Node:
    """A state directory and what lives in it. Sandboxes are made in the process's default node unless one is given.

    root: state directory; default $DSEC_ROOT, else /run/dsec for root, else $XDG_RUNTIME_DIR/dsec.
    images: image directory; default $DSEC_IMAGES, else /var/lib/dsec for root, else $XDG_DATA_HOME/dsec.

    Opening adopts what lives there and removes what dead sandboxes left. close() (or leaving the `with` block) closes
    the handles of its sandboxes too. One object may be used by several threads; a second call waits for the first.
    Errors: dsec.Error, with step "node", "launcher" or "options".
    """

    def __init__(self, root: _options.Path | None = None, images: _options.Path | None = None) -> None:
        self._handle = NodeHandle(_options.node(root, images))

    def list(self) -> list[SandboxInfo]:
        """The sandboxes of the node, whoever made them, in order of creation."""
        array, n = _fetch(self._handle, lib.dsec_node_list, "struct dsec_sandbox_info")
        return [
            SandboxInfo(_text(i.id), _text(i.name) or None, _text(i.run) or None, _text(i.backend), _text(i.image),
                        State(i.state), i.keeper_pid, i.created_ns / 1e9)
            for i in (array[k] for k in range(n))
        ]

    def stats(self) -> NodeStats:
        """Counters and gauges."""
        s, err = ffi.new("struct dsec_node_stats *"), _errors.new_error()
        s.sz = ffi.sizeof("struct dsec_node_stats")
        with self._handle as c:
            r = lib.dsec_node_stats(c, s, err)
        if r < 0:
            _errors.throw(r, err)
        return NodeStats(s.live, s.created, s.create_failed, s.execs, s.reaped, s.ids_free)

    def probe(self) -> List[ProbeItem]:
        """What this kernel and user can do, why not, and what follows. Leaves nothing behind."""
        return probe(self)

    def reap(self) -> int:
        """Removes what dead sandboxes left on this machine; returns how many of them there were."""
        err = _errors.new_error()
        with self._handle as c:
            r = lib.dsec_node_reap(c, err)
        if r < 0:
            _errors.throw(r, err)
        return int(r)

    @property
    def closed(self) -> bool:
        return not self._handle.open

    def close(self) -> None:
        """Closes the handles of this node's sandboxes, then its own. Retained sandboxes live on."""
        self._handle.close()

    def __enter__(self) -> Node:
        self._handle.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None and handle.open and handle.here:
            handle.close()  # first: the warning may be made an exception
            warnings.warn("a dsec.Node was not closed", ResourceWarning, stacklevel=2, source=self)


def _fetch(handle: NodeHandle | None, call: Any, item: str) -> tuple[Any, int]:
    """Calls one of the functions that fill an array, with one that is long enough; its items live as long as it."""
    err, n = _errors.new_error(), 64
    while True:
        array = ffi.new(f"{item}[]", n)
        if handle:
            with handle as c:
                r = call(c, array, n, ffi.sizeof(item), err)
        else:
            r = call(ffi.NULL, array, n, ffi.sizeof(item), err)
        if r < 0:
            _errors.throw(r, err)
        if r <= n:
            return array, r
        n = r + r // 4


def probe(node: Node | None = None) -> list[ProbeItem]:
    """What this kernel and user can do. Without a node nothing is opened, and what depends on its directories is left
    out."""
    array, n = _fetch(node._handle if node else None, lib.dsec_node_probe, "struct dsec_probe_item")
    return [ProbeItem(_text(i.name), bool(i.available), _text(i.why), _text(i.effect))
            for i in (array[k] for k in range(n))]


_default: Node | None = None
_default_pid = 0
_default_lock = threading.Lock()


def default_node() -> Node:
    """The node of this process, opened at its first use and closed at its exit; a forked child opens its own."""
    global _default, _default_pid
    with _default_lock:
        if _default is None or _default_pid != os.getpid() or _default.closed:
            _default = Node()
            _default_pid = os.getpid()
        return _default


def _after_fork() -> None:
    global _default_lock
    _default_lock = threading.Lock()  # another thread may have held it


def _at_exit() -> None:
    if _default is not None and _default_pid == os.getpid():
        _default.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
