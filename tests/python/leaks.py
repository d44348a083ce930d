# SPDX-License-Identifier: MIT
"""What a test may leave behind: nothing. Others use the machine at the same time, so what is counted is ours for sure."""

from __future__ import annotations

import os
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


def root_of(pid: str) -> str | None:
    """The state directory of one of dsec's processes; None for any other process."""
    try:
        if not Path(f"/proc/{pid}/comm").read_text().startswith("dsec-"):
            return None
        environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    return next((os.fsdecode(e[10:]) for e in environ if e.startswith(b"DSEC_ROOT=")), "")


def processes() -> set[str]:
    """Ours, and every child of this process."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        if root_of(pid) == os.environ["DSEC_ROOT"] or stat.rpartition(")")[2].split()[1] == str(os.getpid()):
            found.add(f"process {stat.partition(')')[0]})")
    return found


def cgroup_bases() -> list[Path]:
    top = Path("/sys/fs/cgroup")
    bases = [top / "dsec", top / "unified/dsec"]
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, own = line.split(":", 2)
        bases.append(top / (controllers or "unified") / own.lstrip("/") / "dsec")
    return bases


def is_of_others(group: Path) -> bool:
    for procs in [*group.glob("cgroup.procs"), *group.glob("*/cgroup.procs")]:
        try:
            pids = procs.read_text().split()
        except OSError:
            continue
        if any(root_of(pid) not in (None, os.environ["DSEC_ROOT"]) for pid in pids):
            return True
    return False


def cgroups() -> set[str]:
    found = set()
    for base in cgroup_bases():
        try:
            found |= {f"cgroup {p}" for p in base.iterdir() if p.name.startswith("dsec-")}
        except OSError:
            pass  # not there, or just gone
    return found


def entries() -> set[str]:
    root = Path(os.environ["DSEC_ROOT"])
    return {f"entry {p}" for sub in ("sb", "names") for p in (root / sub).glob("*")}


def snapshot() -> set[str]:
    return descriptors() | processes() | cgroups() | entries()


def since(before: set[str], seconds: float = 15.0) -> set[str]:
    """What is there now and was not; ends of sandboxes that nobody waited for get time."""
    until = time.monotonic() + seconds
    while True:
        new = snapshot() - before
        if not new or time.monotonic() > until:
            return {n for n in new if not (n.startswith("cgroup ") and is_of_others(Path(n[7:])))}
        if all(n.startswith("cgroup ") and is_of_others(Path(n[7:])) for n in new):
            return set()
        time.sleep(0.02)
