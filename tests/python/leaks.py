# SPDX-License-Identifier: MIT
"""What a test may leave behind: nothing. Others may use the machine too, so what is counted is ours for sure."""

from __future__ import annotations

import ctypes
import os
import struct
import time
from pathlib import Path


def descriptors() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"descriptor {name}: {os.readlink(f'/proc/self/fd/{name}')}")
        except FileNotFoundError:
            pass  # the one that listed them
    return found


def slurp(path: str) -> bytes:
    """Without the cost of a file object: this is asked of every process, twice in a test."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, 1 << 17)
    except OSError:
        return b""  # it ended meanwhile
    finally:
        os.close(fd)


def root_of(pid: str) -> str | None:
    """The state directory of one of dsec's processes; None for any other process."""
    if not slurp(f"/proc/{pid}/comm").startswith(b"dsec-"):
        return None
    environ = slurp(f"/proc/{pid}/environ").split(b"\0")
    return next((os.fsdecode(e[10:]) for e in environ if e.startswith(b"DSEC_ROOT=")), "")


def processes() -> set[str]:
    """Ours, and every child of this process."""
    found = set()
    me = str(os.getpid())
    for pid in filter(str.isdigit, os.listdir("/proc")):
        name, _, rest = slurp(f"/proc/{pid}/stat").decode("utf-8", "replace").rpartition(")")
        if rest and (rest.split()[1] == me or ("(dsec-" in name and root_of(pid) == os.environ["DSEC_ROOT"])):
            found.add(f"process {name})")
    return found


def cgroup_bases() -> list[Path]:
    top = Path("/sys/fs/cgroup")
    bases = [top / "dsec", top / "unified/dsec"]
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, own = line.split(":", 2)
        bases.append(top / (controllers or "unified") / own.lstrip("/") / "dsec")
    return bases


class Watch:
    """Sees the directory of every sandbox that is made in our state directory, spare ones too: control groups have the
    same names, and nothing else tells ours from those of others."""

    IN_CREATE = 0x100

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        top = os.fsencode(f"{os.environ['DSEC_ROOT']}/sb")
        if self.fd < 0 or libc.inotify_add_watch(self.fd, top, self.IN_CREATE) < 0:
            raise OSError(ctypes.get_errno(), "inotify")
        self.ids: set[str] = set()

    def take_in(self) -> set[str]:
        while True:
            try:
                events = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return self.ids
            while events:
                _, _, _, size = struct.unpack_from("iIII", events)
                name = events[16 : 16 + size].rstrip(b"\0").decode()
                self.ids.add(name.removeprefix(".new-"))
                events = events[16 + size :]


def cgroups(watch: Watch) -> set[str]:
    found = set()
    for base in cgroup_bases():
        try:
            names = set(os.listdir(base))
        except OSError:
            continue  # not there
        found |= {f"cgroup {base}/{name}" for name in names & watch.take_in()}
    return found


def entries() -> set[str]:
    root = Path(os.environ["DSEC_ROOT"])
    return {f"entry {p}" for sub in ("sb", "names") for p in (root / sub).glob("*")}


def mounts(watch: Watch) -> set[str]:
    """In this mount namespace: those below our directories, and those that name one of our sandboxes."""
    marks = {os.path.dirname(os.environ["DSEC_ROOT"]) + "/"} | watch.take_in()
    lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    return {f"mount {line}" for line in lines if any(mark in line for mark in marks)}


def snapshot(watch: Watch) -> set[str]:
    return descriptors() | processes() | cgroups(watch) | entries() | mounts(watch)


def since(before: set[str], watch: Watch, seconds: float = 15.0) -> set[str]:
    """What is there now and was not; ends of sandboxes that nobody waited for get time."""
    until = time.monotonic() + seconds
    while (new := snapshot(watch) - before) and time.monotonic() < until:
        time.sleep(0.02)
    return new
