# SPDX-License-Identifier: MIT
"""Sandbox.run(): results, told apart."""

from __future__ import annotations

import pickle
import signal
import time

import dsec
import pytest
from dsec import Reason


def test_result_of_a_command(sandbox: dsec.Sandbox) -> None:
    r = sandbox.run("echo out; echo err >&2; exit 3")
    assert (r.reason, r.exit_code, r.signal, r.ok) == (Reason.EXITED, 3, 0, False)
    assert (r.stdout, r.stderr, r.stdout_bytes) == ("out\n", "err\n", b"out\n")
    assert (r.stdout_size, r.stderr_size, r.truncated) == (4, 4, False)
    assert r.seq == 1 and 0 < r.wall < 30 and r.cpu >= 0 and r.memory_peak > 0
    r = sandbox.run(["true"])
    assert r.ok and r.seq == 2


def test_text_goes_through_the_shell_and_a_list_does_not(sandbox: dsec.Sandbox) -> None:
    assert sandbox.run("echo $((6 * 7))").stdout == "42\n"
    assert sandbox.run(["echo", "$((6 * 7))", "a b"]).stdout == "$((6 * 7)) a b\n"
    assert sandbox.run(("printf", b"%s", "\udcff")).stdout_bytes == b"\xff"


@pytest.mark.parametrize("code", [0, 1, 127, 128, 137, 255])
def test_exit_codes_are_exact(sandbox: dsec.Sandbox, code: int) -> None:
    r = sandbox.run(f"exit {code}")
    assert (r.reason, r.exit_code) == (Reason.EXITED, code)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL, 64])
def test_death_by_signal_is_no_timeout(sandbox: dsec.Sandbox, number: int) -> None:
    r = sandbox.run(f"kill -{int(number)} $$", timeout=60)
    assert (r.reason, r.signal, r.exit_code) == (Reason.SIGNALED, number, -1)


def test_timeout_comes_at_the_deadline_and_ends_the_tree(sandbox: dsec.Sandbox) -> None:
    begin = time.monotonic()
    r = sandbox.run("setsid sh -c 'while :; do echo x >> /tmp/beat; sleep 0.02; done' & sleep 100", timeout=0.5)
    assert r.reason is Reason.TIMEOUT and not r.ok
    assert 0.45 < time.monotonic() - begin < 10
    first = sandbox.run("wc -c < /tmp/beat; sleep 0.3; wc -c < /tmp/beat", check=True).stdout.split()
    assert first[0] == first[1]


def test_a_background_child_does_not_hold_up_the_result(sandbox: dsec.Sandbox) -> None:
    begin = time.monotonic()
    assert sandbox.run("sleep 100 & echo done").stdout == "done\n"
    assert time.monotonic() - begin < 30


def test_bytes_come_back_as_they_were(sandbox: dsec.Sandbox) -> None:
    data = bytes(range(256)) * 300 + b"\r\n\xe2\x82"
    r = sandbox.run(["cat"], stdin=data)
    assert r.stdout_bytes == data
    assert r.stdout.encode("utf-8", "surrogateescape") == data


def test_stdin_is_at_its_end_when_none_is_given(sandbox: dsec.Sandbox) -> None:
    assert sandbox.run("cat; echo end", timeout=30).stdout == "end\n"
    assert sandbox.run("cat", stdin="grün").stdout == "grün"
    assert sandbox.run("cat", stdin="").stdout == ""


def test_large_stdin_arrives_whole(sandbox: dsec.Sandbox) -> None:
    data = memoryview(bytearray(b"0123456789abcdef") * (1 << 20))
    assert sandbox.run("wc -c", stdin=data, timeout=60).stdout.strip() == str(16 << 20)
    assert sandbox.run("head -c 5", stdin=data, timeout=60).stdout == "01234"  # the rest is not wanted


def test_output_over_the_limit_keeps_head_and_tail(sandbox: dsec.Sandbox) -> None:
    r = sandbox.run("seq 1 200000", output_limit="8k")
    assert r.ok and r.truncated and len(r.stdout_bytes) <= 8192
    assert r.stdout_cut is not None and r.stderr_cut is None
    assert r.stdout_size == sum(len(str(i)) + 1 for i in range(1, 200001))
    assert r.stdout_bytes[: r.stdout_cut].startswith(b"1\n2\n3\n")
    assert r.stdout_bytes[r.stdout_cut :].endswith(b"199999\n200000\n")


def test_output_limit_can_kill(sandbox: dsec.Sandbox) -> None:
    r = sandbox.run("yes", output_limit=100_000, limit_kills=True, timeout=60)
    assert r.reason is Reason.OUTPUT_LIMIT and r.truncated


def test_environment_directory_and_user(sandbox: dsec.Sandbox) -> None:
    r = sandbox.run("echo $A:$B; pwd; id -u; id -g", env={"A": "1=2", "B": "ä"}, workdir="/tmp", user=1000)
    assert r.stdout.split() == ["1=2:ä", "/tmp", "1000", "1000"]
    assert sandbox.run("id -g", user="1000:50", workdir="/").stdout == "50\n"
    assert sandbox.run(["/usr/bin/env"], env={"ONLY": "this"}, clean_env=True).stdout == "ONLY=this\n"


def test_options_of_the_sandbox_reach_its_commands() -> None:
    with dsec.Sandbox.create(env={"X": "y"}, workdir="/srv/w", hostname="box", user=1000) as sb:
        assert sb.run("echo $X; pwd; hostname; id -u").stdout.split() == ["y", "/srv/w", "box", "1000"]


def test_check_raises_with_the_result(sandbox: dsec.Sandbox) -> None:
    with pytest.raises(dsec.ExecError, match="exited with 4: went wrong") as e:
        sandbox.run("echo went wrong >&2; exit 4", check=True)
    assert e.value.result is not None and e.value.result.exit_code == 4
    again = pickle.loads(pickle.dumps(e.value))
    assert type(again) is dsec.ExecError and again.result == e.value.result and str(again) == str(e.value)
    with pytest.raises(dsec.ExecError, match="timed out"):
        sandbox.run(["sleep", "9"], timeout=0.1, check=True)
    assert sandbox.run("true", check=True).ok


def test_out_of_memory_is_told_and_the_sandbox_lives_on() -> None:
    with dsec.Sandbox.create(memory="128M", limits_optional=True) as sb:
        if not any(i.name == "cgroup_memory" and i.available for i in dsec.probe()):
            pytest.skip("no memory controller here")
        r = sb.run(["python3", "-c", "x = bytearray(1 << 30)"], timeout=60)
        assert r.reason is Reason.OOM
        assert sb.run("echo alive").stdout == "alive\n"
        stats = sb.stats()
        assert stats.oom_kills and stats.oom_kills >= 1


@pytest.mark.parametrize(
    "command, code",
    [(["no-such-program"], 2), (["/no/such/program"], 2), (["/etc"], 13), (["x" * 100, "y"], 2)],
)
def test_what_cannot_be_executed_is_an_error(sandbox: dsec.Sandbox, command: list[str], code: int) -> None:
    with pytest.raises(dsec.Error) as e:
        sandbox.run(command)
    assert (e.value.errno, e.value.step) == (code, "exec")
    assert sandbox.run("true").ok


def test_stats(sandbox: dsec.Sandbox) -> None:
    with sandbox.start(["sleep", "60"]):
        sandbox.run("true")
        s = sandbox.stats()
    assert s.execs == 2 and s.execs_running == 1
    assert s.cpu is None or s.cpu > 0


def test_nothing_is_lost_in_the_null_backend() -> None:
    with dsec.Sandbox.create("null") as sb:
        assert sb.run(["echo", "a", "b"]).stdout == "a b\n"
        assert sb.run(["exit", "9"]).exit_code == 9
        assert sb.capabilities == dsec.Capability.EXEC
        with pytest.raises(dsec.Error) as e:
            sb.files.read("/x")
        assert e.value.errno == 95  # ENOTSUP
