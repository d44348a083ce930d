# SPDX-License-Identifier: MIT
"""Sandbox.start(): streams, terminals, stdin, signals."""

from __future__ import annotations

import errno
import signal
import threading
import time

import dsec
import pytest
from dsec import Reason
from dsec._dsec import lib


def read_until(e: dsec.Exec, text: bytes) -> bytes:
    got = b""
    while text not in got:
        data = e.read(4096)
        assert data, got
        got += data
    return got


def test_output_comes_while_the_command_runs(sandbox: dsec.Sandbox) -> None:
    with sandbox.start("echo first; read x; echo got $x", stdin=True) as e:
        assert e.read(100) == b"first\n"
        assert e.poll() is None
        e.write("word\n")
        assert e.read() == b"got word\n"
        assert e.read(10) == b""
        r = e.wait()
        assert r.ok and r.stdout == "" and r.stdout_size == 15
        assert e.poll() == e.wait(0) == r


def test_iteration_gives_both_streams(sandbox: dsec.Sandbox) -> None:
    with sandbox.start("for i in 1 2 3; do echo o$i; echo e$i >&2; done") as e:
        got = {"stdout": b"", "stderr": b""}
        for chunk in e:
            got[chunk.stream] += chunk.data
        assert got == {"stdout": b"o1\no2\no3\n", "stderr": b"e1\ne2\ne3\n"}
        assert e.wait().ok


def test_one_stream_is_read_while_the_other_is_full(sandbox: dsec.Sandbox) -> None:
    with sandbox.start("head -c 6000000 /dev/zero >&2; echo after") as e:
        assert e.read() == b"after\n"
        assert len(e.read(stream="stderr")) == 6000000


def test_unread_output_is_kept_by_wait(sandbox: dsec.Sandbox) -> None:
    with sandbox.start("head -c 5000000 /dev/zero; echo x >&2") as e:
        assert e.wait(60).ok
        assert len(e.read()) == 5000000
        assert e.read(stream="stderr") == b"x\n"


def test_endless_output_is_an_error_and_not_all_memory(sandbox: dsec.Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsec._handle.HELD_MAX", 4 << 20)
    with sandbox.start("yes") as e:
        with pytest.raises(dsec.Error) as err:
            e.wait(60)
        assert err.value.errno == errno.ENOBUFS
        assert e.read(4) == b"y\ny\n"


def test_output_is_held_back_while_nobody_reads(sandbox: dsec.Sandbox) -> None:
    with sandbox.start("i=0; while :; do echo $i; i=$((i + 1)); done") as e:
        assert e.read(2) == b"0\n"
        time.sleep(0.3)
        before = time.process_time()
        time.sleep(0.1)
        assert time.process_time() - before < 0.09
        assert e.read(2) == b"1\n"
    assert sandbox.run("true").ok


def test_a_stream_without_streaming(sandbox: dsec.Sandbox) -> None:
    with sandbox.start("cat; echo err >&2; exit 5", stdin="all of it", stream=False) as e:
        with pytest.raises(dsec.OptionError, match="^stream"):
            e.read(1)
        r = e.wait(60)
        assert (r.stdout, r.stderr, r.exit_code) == ("all of it", "err\n", 5)
        assert e.wait() is r


def test_wait_with_a_timeout(sandbox: dsec.Sandbox) -> None:
    for stream in True, False:
        with sandbox.start("sleep 60", stream=stream) as e:
            begin = time.monotonic()
            with pytest.raises(dsec.WaitTimeout) as err:
                e.wait(0.2)
            assert isinstance(err.value, TimeoutError) and 0.15 < time.monotonic() - begin < 10
            with pytest.raises(TimeoutError):
                e.wait(0)


def test_timeout_of_a_stream(sandbox: dsec.Sandbox) -> None:
    with sandbox.start("echo a; sleep 60", timeout=0.3) as e:
        assert e.read() == b"a\n"
        assert e.wait().reason is Reason.TIMEOUT


def test_stdin_larger_than_any_buffer(sandbox: dsec.Sandbox) -> None:
    data = b"0123456789abcdef" * 400_000
    with sandbox.start("cat", stdin=True) as e:
        t = threading.Thread(target=lambda: (e.write(data), e.close_stdin()))
        t.start()
        assert e.read() == data
        t.join()
        assert e.wait().ok
    with sandbox.start("cat", stdin=data) as e:
        assert e.read() == data


def test_stdin_and_output_of_one_thread_do_not_lock_up(sandbox: dsec.Sandbox) -> None:
    data = bytes(8_000_000)
    with sandbox.start("cat", stdin=True) as e:
        e.write(data)  # the command can only go on when its output is taken
        e.close_stdin()
        assert e.read() == data


def test_stdin_that_is_closed(sandbox: dsec.Sandbox) -> None:
    with sandbox.start("cat", stdin=True) as e:
        e.close_stdin()
        e.close_stdin()
        with pytest.raises(dsec.Error) as err:
            e.write("x")
        assert err.value.errno == errno.EPIPE
        assert e.wait(60).ok
        e.close_stdin()
    with sandbox.start("true", stdin=True) as e:
        assert e.wait(60).ok
        with pytest.raises(dsec.Error) as err:
            e.write("x" * 1_000_000)
        assert err.value.errno == errno.EPIPE


def test_terminal(sandbox: dsec.Sandbox) -> None:
    with sandbox.start("stty size; trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done",
                       tty=(30, 100)) as e:
        assert read_until(e, b"ready\r\n") == b"30 100\r\nready\r\n"
        e.resize(40, 120)
        assert read_until(e, b"\r\n") == b"40 120\r\n"
        e.write(b"\x03")
        read_until(e, b"^C")
        r = e.wait(60)
        assert r.signal == signal.SIGINT or r.exit_code == 130


def test_all_streams_are_the_terminal(sandbox: dsec.Sandbox) -> None:
    with sandbox.start(["sh", "-c", "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo yes >&2"], tty=(24, 80)) as e:
        assert e.read() == b"yes\r\n"
        assert e.read(stream="stderr") == b""


def test_signals(sandbox: dsec.Sandbox) -> None:
    with sandbox.start("trap 'echo term; exit 9' TERM; echo ready; while :; do sleep 0.05; done") as e:
        read_until(e, b"ready\n")
        e.signal(signal.SIGTERM)
        assert e.read() == b"term\n"
        assert e.wait().exit_code == 9
        with pytest.raises(dsec.Error) as err:
            e.signal(signal.SIGTERM)
        assert err.value.errno == errno.EPIPE
    with sandbox.start("sleep 100") as e:
        e.signal(signal.SIGKILL)
        assert (e.wait(60).reason, e.wait().signal) == (Reason.SIGNALED, signal.SIGKILL)


def test_a_signal_while_another_thread_waits(sandbox: dsec.Sandbox) -> None:
    with sandbox.start("sleep 100", stream=False) as e:
        results = []
        t = threading.Thread(target=lambda: results.append(e.wait()))
        t.start()
        time.sleep(0.1)
        e.signal(signal.SIGKILL)
        t.join(60)
        assert results[0].signal == signal.SIGKILL


def test_closing_ends_the_tree(sandbox: dsec.Sandbox) -> None:
    e = sandbox.start("setsid sh -c 'while :; do echo x >> /tmp/beat; sleep 0.02; done' & "
                      "while [ ! -s /tmp/beat ]; do sleep 0.01; done; echo on; sleep 100")
    read_until(e, b"on\n")
    e.close()
    e.close()
    time.sleep(0.2)
    assert e.closed
    first = sandbox.run("wc -c < /tmp/beat; sleep 0.3; wc -c < /tmp/beat", check=True).stdout.split()
    assert first[0] == first[1]
    for call in (lambda: e.read(1), lambda: e.write("x"), lambda: e.wait(), lambda: e.poll(), lambda: e.signal(9),
                 lambda: e.resize(1, 1), lambda: next(iter(e)), lambda: e.__enter__()):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_many_at_once(sandbox: dsec.Sandbox) -> None:
    commands = [sandbox.start(f"sleep 0.1; echo {i}") for i in range(20)]
    assert [e.read() for e in commands] == [f"{i}\n".encode() for i in range(20)]
    assert {e.wait().seq for e in commands} == set(range(1, 21))
    for e in commands:
        e.close()


def test_what_cannot_be_executed_shows_in_wait(sandbox: dsec.Sandbox) -> None:
    with sandbox.start(["no-such-program"]) as e:
        assert e.read() == b"" == e.read(stream="stderr")
        with pytest.raises(dsec.Error) as err:
            e.wait()
        assert (err.value.errno, err.value.step) == (errno.ENOENT, "exec")


def test_the_sandbox_ends_under_a_command(sandbox: dsec.Sandbox) -> None:
    other = dsec.Sandbox.attach(sandbox.id)
    e = sandbox.start("echo on; sleep 100")
    read_until(e, b"on\n")
    other.stop()
    with pytest.raises(dsec.SandboxLost) as lost:
        e.wait(60)
    assert not lost.value.retry and lost.value.errno == errno.EPIPE
    e.close()
    # What is asked of a keeper on its way out may or may not be read by it.
    with pytest.raises((dsec.SandboxLost, dsec.UnknownOutcome)) as gone:
        sandbox.run("true")
    assert gone.value.errno == errno.EPIPE


def test_streams_are_numbered_as_in_the_header() -> None:
    assert (lib.DSEC_STREAM_STDOUT, lib.DSEC_STREAM_STDERR) == (1, 2)
