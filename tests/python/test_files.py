# SPDX-License-Identifier: MIT
"""Sandbox.files."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import dsec
import pytest


def code_of(call: object, *args: object) -> tuple[int | None, str]:
    with pytest.raises(dsec.Error) as e:
        call(*args)  # type: ignore[operator]
    return e.value.errno, e.value.step


def test_write_and_read(sandbox: dsec.Sandbox) -> None:
    sandbox.files.write("/new/dirs/a.txt", "grün\n")
    assert sandbox.files.read("/new/dirs/a.txt") == "grün\n".encode()
    assert sandbox.files.read_text("/new/dirs/a.txt") == "grün\n"
    sandbox.files.write("/new/dirs/a.txt", bytearray(b"x"))
    assert sandbox.run("cat /new/dirs/a.txt; stat -c %a /new/dirs/a.txt").stdout == "x644\n"
    sandbox.files.write("/tmp/none", "", mode=None)
    assert sandbox.run("stat -c %a /tmp/none").stdout == "644\n"
    sandbox.files.write("/root/run", b"#!/bin/sh\necho ran\n", mode=0o750)
    assert sandbox.run(["/root/run"]).stdout == "ran\n"
    assert sandbox.run("stat -c %a /root/run").stdout == "750\n"


@pytest.mark.parametrize("name", ["with space", "new\nline", "ä", b"\xff\xfe", "x" * 255, "-n"])
def test_names(sandbox: dsec.Sandbox, name: str | bytes) -> None:
    path = b"/tmp/d/" + (name if isinstance(name, bytes) else name.encode())
    sandbox.files.write(path, b"data")
    assert sandbox.files.read(path) == b"data"
    assert sandbox.files.read(os.fsdecode(path)) == b"data"
    assert sandbox.run(["ls", "/tmp/d"]).ok


def test_empty_and_binary(sandbox: dsec.Sandbox) -> None:
    for data in b"", bytes(range(256)) * 1000:
        sandbox.files.write("/tmp/x", data)
        assert sandbox.files.read("/tmp/x") == data
    with pytest.raises(UnicodeDecodeError):
        sandbox.files.read_text("/tmp/x")
    assert len(sandbox.files.read_text("/tmp/x", errors="surrogateescape")) == 256000


def test_relative_paths(sandbox: dsec.Sandbox) -> None:
    sandbox.files.write(Path("rel/a"), "1")
    assert sandbox.files.read("/root/rel/a") == b"1"


def test_the_right_errors(sandbox: dsec.Sandbox) -> None:
    sandbox.run("mkfifo /tmp/fifo; ln -s loop /tmp/loop; echo x > /tmp/file", check=True)
    read, write = sandbox.files.read, sandbox.files.write
    assert code_of(read, "/none") == (errno.ENOENT, "file")
    assert code_of(read, "/etc") == (errno.EISDIR, "file")
    assert code_of(read, "/tmp/fifo") == (errno.EINVAL, "file")
    assert code_of(read, "/dev/zero") == (errno.EINVAL, "file")
    assert code_of(read, "/tmp/loop") == (errno.ELOOP, "file")
    assert code_of(read, "/tmp/file/x") == (errno.ENOTDIR, "file")
    assert code_of(write, "/etc", b"") == (errno.EISDIR, "file")
    with pytest.raises(dsec.OptionError, match="^path"):
        read("")
    with pytest.raises(dsec.OptionError, match="^path"):
        read("a\0b")
    with pytest.raises(dsec.OptionError, match="^mode"):
        sandbox.files.write("/tmp/x", b"", mode=0o10000)
    with pytest.raises(TypeError, match="^data"):
        sandbox.files.write("/tmp/x", 5)  # type: ignore[arg-type]
    with pytest.raises(dsec.Error, match="/none"):
        read("/none")


def test_links_do_not_lead_out(sandbox: dsec.Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("host")
    sandbox.run(["ln", "-s", str(secret), "/tmp/link"], check=True)
    assert code_of(sandbox.files.read, "/tmp/link")[0] == errno.ENOENT
    sandbox.files.write(f"/../../..{secret}", "inside")
    assert secret.read_text() == "host"
    assert sandbox.files.read("/tmp/link") == b"inside"


def test_a_full_disk(sandbox: dsec.Sandbox) -> None:
    with dsec.Sandbox.create(disk="4M") as sb:
        assert code_of(sb.files.write, "/root/big", bytes(8 << 20))[0] == errno.ENOSPC
        assert sb.run("rm -f /root/big; echo ok").stdout == "ok\n"


def test_fifty_megabytes_each_way(sandbox: dsec.Sandbox, tmp_path: Path) -> None:
    data = os.urandom(1 << 20) * 50
    want = hashlib.sha256(data).hexdigest()
    sandbox.files.write("/tmp/big", data)
    assert sandbox.run("sha256sum < /tmp/big").stdout.split()[0] == want
    assert sandbox.files.read("/tmp/big") == data
    here = tmp_path / "here"
    sandbox.files.get("/tmp/big", here)
    assert hashlib.sha256(here.read_bytes()).hexdigest() == want
    here.chmod(0o751)
    sandbox.files.put(here, "/tmp/dir/again")
    assert sandbox.run("sha256sum < /tmp/dir/again").stdout.split()[0] == want
    assert sandbox.run("stat -c %a /tmp/dir/again").stdout == "751\n"


def test_get_is_whole_or_not_at_all(sandbox: dsec.Sandbox, tmp_path: Path) -> None:
    target = tmp_path / "t"
    target.write_text("former")
    assert code_of(sandbox.files.get, "/none", target)[0] == errno.ENOENT
    assert code_of(sandbox.files.get, "/etc/passwd", tmp_path / "no/dir")[0] == errno.ENOENT
    assert code_of(sandbox.files.put, tmp_path / "none", "/tmp/x")[0] == errno.ENOENT
    assert code_of(sandbox.files.put, tmp_path, "/tmp/x")[0] == errno.EISDIR
    assert code_of(sandbox.files.put, "/dev/null", "/tmp/x")[0] == errno.EINVAL
    assert target.read_text() == "former" and os.listdir(tmp_path) == ["t"]
