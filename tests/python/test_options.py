# SPDX-License-Identifier: MIT
"""Bad input is refused before anything is done, by its name."""

from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import Any

import dsec
import pytest
from dsec import _options
from dsec._dsec import ffi, lib

CONSTANT = re.compile(r"^\s+(DSEC_\w+) = (\d+)u?(?: << (\d+))?,", re.MULTILINE)

CREATE_BAD = [
    ("memory", "2X"), ("memory", ""), ("memory", "-1"), ("memory", -1), ("memory", 0), ("memory", 1 << 64),
    ("memory", 4096), ("memory", "9" * 400), ("memory", "9" * 5000 + "G"), ("cpu", 10**400), ("cpu", 1e300),
    ("cpu", -1), ("cpu", 0), ("cpu", float("nan")), ("cpu", float("inf")), ("cpu", 1e9),
    ("pids", 0), ("pids", -5), ("pids", 1 << 40), ("disk", "many"), ("disk", 1), ("disk_inodes", 1),
    ("network", "bridge"), ("top", "tape"), ("name", "A"), ("name", "../x"), ("name", "a\0b"), ("name", "a" * 64),
    ("name", ""), ("name", "a\n"), ("run", "-"), ("image", "relative/path"), ("image", ""), ("image", "/a/../b"),
    ("workdir", "relative"), ("workdir", "/proc/self/fd/3"), ("workdir", ""), ("user", "-1"), ("user", "0x0"),
    ("user", " 0"), ("user", "1000:abc"), ("user", ""), ("user", "nobody"), ("user", str(1 << 32)), ("user", -1),
    ("hostname", "a b"), ("hostname", ""), ("backend", "docker"), ("backend", "cont"), ("backend", "a\0b"),
    ("env", {"A=B": "c"}), ("env", {"": "c"}), ("env", {"A": "b\0"}), ("env", {"A\0": "b"}),
]


@pytest.mark.parametrize("field, value", CREATE_BAD)
def test_create_names_what_it_refuses(field: str, value: object) -> None:
    with pytest.raises(dsec.OptionError) as e:
        dsec.Sandbox.create(**{field: value})  # type: ignore[arg-type]
    assert isinstance(e.value, ValueError) and isinstance(e.value, dsec.Error)
    assert e.value.errno == errno.EINVAL and e.value.step == "options"
    assert str(e.value).startswith(field)


@pytest.mark.parametrize(
    "field, value",
    [("memory", 1.5), ("memory", True), ("cpu", "2"), ("pids", "7"), ("pids", True), ("env", "A=b"), ("env", {"A": 1}),
     ("env", {1: "a"}), ("name", 7), ("network", None), ("image", 3), ("user", 1.0), ("workdir", 5)],
)
def test_create_names_what_has_the_wrong_type(field: str, value: object) -> None:
    with pytest.raises(TypeError, match=field):
        dsec.Sandbox.create(**{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "field, value",
    [("timeout", 0), ("timeout", -1), ("timeout", float("nan")), ("timeout", 1e30), ("timeout", 10**400),
     ("workdir", "x"), ("user", "me"), ("output_limit", 0),
     ("output_limit", "1Z"), ("env", {"=": "x"}), ("stdin", "\ud800")],
)
def test_run_names_what_it_refuses(sandbox: dsec.Sandbox, field: str, value: Any) -> None:
    with pytest.raises(dsec.OptionError, match=f"^{field}"):
        sandbox.run("true", **{field: value})


@pytest.mark.parametrize("command", [[], [""], "a\0b", ["a", "b\0"], "\ud800"])
def test_bad_commands(sandbox: dsec.Sandbox, command: Any) -> None:
    with pytest.raises(dsec.OptionError, match="^command"):
        sandbox.run(command)


@pytest.mark.parametrize("command", [None, 5, b"ls", ["a", 5], {"a": 1}])
def test_commands_of_the_wrong_type(sandbox: dsec.Sandbox, command: Any) -> None:
    with pytest.raises(TypeError, match="^command"):
        sandbox.run(command)


def test_bad_arguments_of_start(sandbox: dsec.Sandbox) -> None:
    for tty in (0, 80), (24, 70000), (-1, 1):
        with pytest.raises(dsec.OptionError, match="rows|cols"):
            sandbox.start("true", tty=tty)
    with pytest.raises(TypeError, match="tty"):
        sandbox.start("true", tty=80)  # type: ignore[arg-type]
    with pytest.raises(dsec.OptionError, match="^limit_kills"):
        sandbox.start("true", limit_kills=True)
    with sandbox.start("cat", stdin=True) as e:
        with pytest.raises(dsec.OptionError, match="^stream"):
            e.read(1, "stdin")
        with pytest.raises(TypeError, match="^data"):
            e.write(5)  # type: ignore[arg-type]
        for number in 0, 65, -9:
            with pytest.raises(dsec.OptionError, match="^signal"):
                e.signal(number)
    with sandbox.start("sleep 9") as e:
        with pytest.raises(dsec.Error) as err:
            e.write("x")
        assert err.value.errno == errno.EINVAL
        with pytest.raises(dsec.Error) as err:
            e.resize(10, 10)
        assert err.value.errno == errno.EINVAL


@pytest.mark.parametrize(
    "text, n",
    [("1", 1), ("512M", 512 << 20), ("2G", 2 << 30), ("2gb", 2 << 30), ("1.5 GiB", 3 << 29), (" 64k ", 65536),
     ("1T", 1 << 40), ("100B", 100), (12345, 12345),
     ("9007199254740993", 9007199254740993), ("0.001k", 1)],
)
def test_sizes(text: str | int, n: int) -> None:
    assert _options.size("memory", text) == n


@pytest.mark.parametrize("shape", [(2, 4), (2, 2, 2), (8,)])
def test_data_of_several_dimensions_is_whole(shape: tuple[int, ...]) -> None:
    assert bytes(_options.data("stdin", memoryview(b"abcdefgh").cast("B", shape))) == b"abcdefgh"
    assert len(_options.data("stdin", memoryview(b"abcdefgh").cast("B", shape))) == 8


def test_times_are_rounded_up() -> None:
    assert [_options.milliseconds("timeout", t) for t in (1e-9, 0.001, 0.0011, 2)] == [1, 1, 2, 2000]


def test_objects_are_made_by_their_factories() -> None:
    with pytest.raises(TypeError, match="create"):
        dsec.Sandbox()
    with pytest.raises(TypeError, match="create"):
        dsec.AsyncSandbox()


def test_numbers_are_those_of_the_headers() -> None:
    for enum, prefix in (dsec.Reason, "REASON"), (dsec.State, "STATE"), (dsec.Capability, "CAP"):
        for member in enum:
            assert getattr(lib, f"DSEC_{prefix}_{member.name}") == member.value
        known = {n for n in dir(lib) if n.startswith(f"DSEC_{prefix}_")}
        assert known == {f"DSEC_{prefix}_{m.name}" for m in enum}
    assert ffi.sizeof("struct dsec_error") == 256
    assert dsec.__version__.count(".") == 2


def test_every_constant_of_the_headers_is_there() -> None:
    """Read from the headers in another way than the build reads them."""
    found = {}
    for header in (Path(__file__).parents[2] / "include/dsec").glob("*.h"):
        for name, value, shift in CONSTANT.findall(header.read_text()):
            found[name] = int(value) << int(shift or 0)
    assert len(found) > 60 and {n: getattr(lib, n, None) for n in found} == found
