# SPDX-License-Identifier: MIT
"""python -m dsec"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator

import dsec
import pytest


def cli(*args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-X", "dev", "-m", "dsec", *args], input=stdin, capture_output=True,
                          text=True, timeout=120, stdin=None if stdin is not None else subprocess.DEVNULL)


@pytest.fixture
def kept() -> Iterator[str]:
    r = cli("run", "--retain", "--name", "cli-kept")
    assert r.returncode == 0 and r.stderr == ""
    yield r.stdout.strip()
    cli("stop", r.stdout.strip())


def test_run_passes_output_and_exit_status_on() -> None:
    r = cli("run", "-m", "256M", "--limits-optional", "-e", "A=b=c", "-w", "/tmp", "--", "sh", "-c",
            "echo $A $PWD; echo err >&2; exit 7")
    assert (r.returncode, r.stdout, r.stderr) == (7, "b=c /tmp\n", "err\n")


@pytest.mark.parametrize(
    "args, status, text",
    [
        (["run", "--", "sh", "-c", "kill -9 $$"], 137, ""),
        (["run", "-T", "0.2", "--", "sleep", "60"], 124, ""),
        (["run", "--", "no-such-program"], 127, 'dsec: execve "no-such-program": No such file'),
        (["run", "--", "/etc"], 126, "dsec: "),
        (["run", "-m", "2X", "--", "true"], 2, "dsec: memory: '2X' is not a size"),
        (["run", "-i", "/no/image", "--", "true"], 125, "dsec: "),
        (["run"], 2, "a command is needed"),
        (["run", "-e", "novalue", "true"], 2, "NAME=value"),
        (["exec", "nobody-there", "true"], 125, "nobody-there"),
        (["stop", "nobody-there"], 1, "dsec: nobody-there: "),
        (["ps", "--root", "relative"], 2, "dsec: root: "),
        ([], 2, "usage:"),
    ],
)
def test_exit_status(args: list[str], status: int, text: str) -> None:
    r = cli(*args)
    assert r.returncode == status and text in r.stderr
    assert "Traceback" not in r.stderr


def test_a_retained_sandbox_from_outside(kept: str) -> None:
    assert cli("exec", kept, "--", "sh", "-c", "echo 1 > /root/x").returncode == 0
    assert cli("exec", "cli-kept", "cat", "/root/x").stdout == "1\n"
    assert cli("exec", "--stdin", kept, "--", "cat", stdin="piped").stdout == "piped"
    r = cli("--json", "exec", kept, "--", "sh", "-c", "echo o; exit 5")
    result = json.loads(r.stdout)
    assert r.returncode == 5 and (result["stdout"], result["exit_code"], result["reason"]) == ("o\n", 5, "EXITED")
    table = cli("ps").stdout.splitlines()
    assert table[0].split()[:2] == ["ID", "NAME"] and kept in table[1] and "running" in table[1]
    (info,) = json.loads(cli("ps", "--json").stdout)
    assert (info["id"], info["name"], info["state"]) == (kept, "cli-kept", "running")
    assert json.loads(cli("stop", "--json", "cli-kept").stdout) == [kept]
    assert json.loads(cli("ps", "--json").stdout) == []


def test_probe_and_reap() -> None:
    items = {i["name"]: i for i in json.loads(cli("probe", "--json").stdout)}
    assert items["kernel"]["available"] is True
    assert "kernel" in cli("probe").stdout
    assert json.loads(cli("reap", "--json").stdout)["live"] == 0
    assert "live" in cli("reap").stdout
    assert cli("--version").stdout.strip() == dsec.__version__


def test_terminal_and_tables() -> None:
    """On a terminal of its own, where tables may be drawn and --tty works."""

    def on_terminal(*args: str, keys: bytes = b"") -> tuple[int, bytes]:
        pid, fd = pty.fork()
        if pid == 0:
            os.execv(sys.executable, [sys.executable, "-m", "dsec", *args])
        got = b""
        try:
            while data := os.read(fd, 4096):
                got += data
                if keys and b"ready" in got:
                    os.write(fd, keys)
                    keys = b""
        except OSError:
            pass  # how a terminal's end reads
        os.close(fd)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), got

    status, got = on_terminal("run", "-t", "--", "sh", "-c", "echo ready; read x; echo got $x; exit 6", keys=b"key\r")
    assert status == 6 and b"got key" in got
    status, got = on_terminal("ps")
    assert status == 0 and b"backend" in got.lower()
