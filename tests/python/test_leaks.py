# SPDX-License-Identifier: MIT
"""The check around every test sees what it is there for."""

from __future__ import annotations

import dsec
import leaks


def test_what_is_alive_is_seen(watch: leaks.Watch) -> None:
    before = leaks.snapshot(watch)
    with dsec.Sandbox.create(name="seen", memory="64M", limits_optional=True):
        new = leaks.since(before, watch, seconds=0)
    kinds = {n.split()[0] for n in new}
    assert {"descriptor", "process", "entry"} <= kinds
    if any(i.name == "cgroup" and i.available for i in dsec.probe()):
        assert "cgroup" in kinds
