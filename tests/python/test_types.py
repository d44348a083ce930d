# SPDX-License-Identifier: MIT
"""The package is typed, and its types hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dsec
import pytest

USE = """
import dsec
from typing import assert_type

async def main() -> None:
    async with await dsec.AsyncSandbox.create(cpu=1, memory="2G") as sb:
        assert_type(await sb.run(["true"]), dsec.Result)
        async for chunk in await sb.start("x"):
            assert_type(chunk.data, bytes)

with dsec.Sandbox.create(env={"A": "b"}) as sb:
    assert_type(sb.run("x").stdout, str)
    assert_type(sb.files.read("x"), bytes)
    with sb.start("x", tty=(24, 80)) as e:
        assert_type(e.poll(), dsec.Result | None)
    sb.run(5)  # E: arg-type
"""


def test_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    package = Path(dsec.__file__).parent
    assert (package / "py.typed").exists()
    (tmp_path / "use.py").write_text(USE)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "use.py"]
    r = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    lines = [line for line in r.stdout.splitlines() if ": error:" in line]
    assert len(lines) == 1 and "use.py:16" in lines[0] and "arg-type" in lines[0], r.stdout + r.stderr


def test_the_library_comes_from_the_package() -> None:
    package = str(Path(dsec.__file__).parent)
    maps = Path("/proc/self/maps").read_text()
    libraries = {line.split(maxsplit=5)[5] for line in maps.splitlines() if "libdsec.so" in line}
    assert len(libraries) == 1 and libraries.pop().startswith(package)
