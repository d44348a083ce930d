# SPDX-License-Identifier: MIT
"""The check around every test sees what it is there for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import dsec
import leaks
import pytest


def test_what_is_alive_is_seen(watch: leaks.Watch) -> None:
    before = leaks.snapshot(watch)
    with dsec.Sandbox.create(name="seen", memory="64M", limits_optional=True):
        new = leaks.since(before, watch, seconds=0)
    kinds = {n.split()[0] for n in new}
    assert {"descriptor", "process", "entry"} <= kinds
    if any(i.name == "cgroup" and i.available for i in dsec.probe()):
        assert "cgroup" in kinds


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts as root")
def test_a_mount_is_seen(watch: leaks.Watch) -> None:
    before = leaks.snapshot(watch)
    place = Path(os.environ["DSEC_ROOT"]).parent / "mount"
    place.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
        new = leaks.since(before, watch, seconds=0)
    finally:
        subprocess.run(["umount", place], check=True)
        place.rmdir()
    assert len(new) == 1 and new.pop().startswith("mount ")
