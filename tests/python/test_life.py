# SPDX-License-Identifier: MIT
"""Making, finding and ending sandboxes: names, nodes, threads, forks, what is forgotten."""

from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import dsec
import pytest


def in_child(work: Callable[[], None]) -> None:
    """Runs it in a forked child; fails with what went wrong there."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os.write(w, traceback.format_exc().encode())
            os._exit(1)
    os.close(w)
    with open(r, "rb") as f:
        text = f.read().decode()
    assert os.waitpid(pid, 0)[1] == 0, text


def python(code: str) -> str:
    r = subprocess.run([sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, r.stderr
    assert "Warning" not in r.stderr, r.stderr
    return r.stdout


def test_stop_leaves_nothing_and_closes() -> None:
    sb = dsec.Sandbox.create()
    state = Path(os.environ["DSEC_ROOT"]) / "sb" / sb.id
    assert state.is_dir() and sb.id.startswith("dsec-") and len(sb.id) == 25
    assert dsec.Capability.TTY | dsec.Capability.ATTACH in sb.capabilities
    sb.stop()
    assert not state.exists() and sb.closed
    sb.stop()
    sb.close()
    for call in (lambda: sb.run("true"), lambda: sb.start("true"), sb.stats, lambda: sb.files.read("/x"),
                 lambda: sb.files.write("/x", b""), sb.__enter__):
        with pytest.raises(ValueError, match="closed"):
            call()
    assert sb.id and "closed" in repr(sb)


def test_files_of_one_sandbox_are_not_in_another() -> None:
    with dsec.Sandbox.create() as a, dsec.Sandbox.create() as b:
        a.files.write("/root/mark", "a")
        assert a.id != b.id and not b.run("ls /root/mark").ok


def test_a_name_is_taken_once(sandbox: dsec.Sandbox) -> None:
    with dsec.Sandbox.create(name="the-name", run="run-1") as sb:
        with pytest.raises(dsec.Error) as e:
            dsec.Sandbox.create(name="the-name")
        assert e.value.errno == errno.EEXIST and e.value.step == "name" and "the-name" in str(e.value)
        with dsec.Sandbox.attach("the-name") as other:
            assert other.id == sb.id and other.run("echo 1").stdout == "1\n"
        assert sb.run("echo 2").stdout == "2\n"  # leaving an attached one's block has not ended it
    with dsec.Sandbox.create(name="the-name"):
        pass


def test_attach_to_what_is_not_there() -> None:
    for name, code in ("nobody", errno.ENOENT), ("dsec-aaaaaaaaaaaaaaaaaaaa", errno.ENOENT), ("../x", errno.EINVAL):
        with pytest.raises(dsec.Error) as e:
            dsec.Sandbox.attach(name)
        assert e.value.errno == code
    with pytest.raises(dsec.OptionError):
        dsec.Sandbox.attach("")


def test_missing_image() -> None:
    for image, code in ("/no/such/image", errno.ENOENT), ("/etc/passwd", errno.ENOTDIR):
        with pytest.raises(dsec.Error) as e:
            dsec.Sandbox.create(image=image)
        assert (e.value.errno, e.value.step) == (code, "image")


def test_retained_ones_outlive_their_maker() -> None:
    sid = python("import dsec\nwith dsec.Sandbox.create(retain=True, name='kept') as sb:\n"
                 " sb.files.write('/root/x', 'still here')\n print(sb.id)").strip()
    with dsec.Node() as node:
        (info,) = [i for i in node.list() if i.id == sid]
        assert (info.name, info.run, info.backend, info.image) == ("kept", None, "container", "host")
        assert info.state is dsec.State.RUNNING and abs(info.created - time.time()) < 600 and info.keeper_pid > 0
        sb = dsec.Sandbox.attach("kept", node=node)
        assert sb.files.read("/root/x") == b"still here"
        sb.stop()
        assert sid not in [i.id for i in node.list()]


def test_what_a_killed_process_made_is_gone() -> None:
    code = "import dsec, os\nsb = dsec.Sandbox.create(name='orphan')\nsb.start('sleep 1000')\nos.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == -9
    until = time.monotonic() + 30
    with dsec.Node() as node:
        while node.list() and time.monotonic() < until:
            time.sleep(0.05)
        assert node.list() == []


def test_a_dead_keeper_is_a_lost_sandbox_or_an_unknown_outcome() -> None:
    with dsec.Node() as node, dsec.Sandbox.create(node=node) as sb:
        (info,) = [i for i in node.list() if i.id == sb.id]
        with sb.start("sleep 100") as e:
            os.kill(info.keeper_pid, signal.SIGKILL)
            with pytest.raises(dsec.UnknownOutcome) as unknown:
                e.wait(60)
        assert not unknown.value.retry and unknown.value.result is None
        time.sleep(0.2)  # all of its connections are closed by then
        with pytest.raises(dsec.SandboxLost) as lost:
            sb.run("true")
        assert lost.value.retry
        with pytest.raises(dsec.SandboxLost):
            sb.stats()
        sb.stop()
        assert [i for i in node.list() if i.id == sb.id] == []


def test_node_counts_and_probes() -> None:
    with dsec.Node() as node:
        before = node.stats()
        with dsec.Sandbox.create(node=node) as sb:
            sb.run("true")
            during = node.stats()
            assert sb.id in [i.id for i in node.list()]
        assert during.created > before.created and during.execs > before.execs and during.live == before.live + 1
        assert node.reap() == 0
        names = {i.name for i in node.probe()}
        assert {"kernel", "user_namespaces"} <= names and {i.name for i in dsec.probe()} <= names
    assert node.closed
    node.close()
    for call in node.list, node.stats, node.probe, node.reap, node.__enter__:
        with pytest.raises(ValueError, match="closed"):
            call()


def test_closing_a_node_closes_its_sandboxes() -> None:
    node = dsec.Node()
    sb = dsec.Sandbox.create(node=node)
    e = sb.start("sleep 100")
    node.close()
    assert sb.closed and e.closed
    with pytest.raises(dsec.SandboxLost):
        e.wait()
    with pytest.raises(ValueError, match="closed"):
        sb.run("true")


def test_nodes_of_their_own(tmp_path: Path) -> None:
    with dsec.Node(root=tmp_path / "r", images=os.environ["DSEC_IMAGES"]) as node:
        with dsec.Sandbox.create(node=node, name="here") as sb:
            assert [i.id for i in node.list()] == [sb.id]
            with pytest.raises(dsec.Error):
                dsec.Sandbox.attach("here")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    for root, code in (tmp_path / "full", errno.EUCLEAN), ("relative", errno.EINVAL), ("/dev/null/x", errno.ENOTDIR):
        with pytest.raises(dsec.Error) as e:
            dsec.Node(root=root)
        assert e.value.errno == code


def test_what_is_not_closed_is_closed_with_a_warning() -> None:
    sb = dsec.Sandbox.create()
    with pytest.warns(ResourceWarning, match="dsec.Exec was not closed"):
        e = sb.start("sleep 100")
        del e
        gc.collect()
    with pytest.warns(ResourceWarning, match=f"dsec.Sandbox was not closed: sandbox {sb.id}"):
        del sb
        gc.collect()
    node = dsec.Node()
    with pytest.warns(ResourceWarning, match="dsec.Node was not closed"):
        del node
        gc.collect()


def test_handles_are_of_no_use_in_a_forked_child(sandbox: dsec.Sandbox) -> None:
    e = sandbox.start("sleep 100")
    node = dsec.Node()

    def work() -> None:
        for call in (lambda: sandbox.run("true"), sandbox.stats, sandbox.stop, lambda: sandbox.files.read("/x"),
                     lambda: e.read(1), e.wait, e.poll, lambda: e.signal(9), node.list, node.stats):
            with pytest.raises(dsec.Error, match=f"belongs to process {os.getppid()}") as error:
                call()
            assert error.value.errno == errno.ECHILD
        sandbox.close()
        e.close()
        node.close()

    in_child(work)
    assert sandbox.run("echo on").stdout == "on\n" and e.poll() is None
    e.close()
    node.close()


def test_a_forked_child_opens_a_node_of_its_own(sandbox: dsec.Sandbox) -> None:
    def work() -> None:
        with dsec.Sandbox.create() as sb:
            assert sb.run("echo child").stdout == "child\n" and sb.id != sandbox.id
        with dsec.Sandbox.attach(sandbox.id) as sb:
            assert sb.run("echo both").stdout == "both\n"

    in_child(work)
    assert sandbox.run("true").ok


def test_a_forked_child_does_not_keep_what_its_parent_closes() -> None:
    sb = dsec.Sandbox.create()
    e = sb.start("sleep 100")
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(w)
        os.read(r, 1)
        os._exit(0)
    os.close(r)
    state = Path(os.environ["DSEC_ROOT"]) / "sb" / sb.id
    e.close()
    sb.close()  # without stop: the keeper sees its connection end
    until = time.monotonic() + 30
    while state.exists() and time.monotonic() < until:
        time.sleep(0.02)
    gone = not state.exists()
    os.close(w)
    os.waitpid(pid, 0)
    assert gone


def test_threads_with_sandboxes_of_their_own() -> None:
    failed = []

    def work(n: int) -> None:
        try:
            with dsec.Sandbox.create() as sb:
                for i in range(5):
                    assert sb.run(f"echo {n}.{i}").stdout == f"{n}.{i}\n"
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert failed == []


def test_threads_that_share_a_sandbox(sandbox: dsec.Sandbox) -> None:
    got: list[str] = []
    begin = time.monotonic()
    threads = [threading.Thread(target=lambda n=n: got.append(sandbox.run(f"sleep 1; echo {n}").stdout))
               for n in range(8)]
    for t in threads:
        t.start()
    sandbox.files.write("/tmp/meanwhile", "x")
    for t in threads:
        t.join(60)
    assert sorted(got) == [f"{n}\n" for n in range(8)]
    assert time.monotonic() - begin < 7  # at the same time, not one after another


@pytest.mark.parametrize("end", ["stop", "close"])
def test_ending_a_sandbox_under_another_thread(end: str) -> None:
    sb = dsec.Sandbox.create()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            sb.run("sleep 100")
        except BaseException as e:
            errors.append(e)

    t = threading.Thread(target=work)
    t.start()
    time.sleep(0.3)
    getattr(sb, end)()
    t.join(60)
    assert [type(e) for e in errors] == [dsec.SandboxLost]


def test_interrupt_from_the_keyboard(sandbox: dsec.Sandbox) -> None:
    begin = time.monotonic()
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        sandbox.run("sleep 100")
    timer.join()
    assert time.monotonic() - begin < 20
    assert sandbox.run("pidof sleep", timeout=30).stdout == ""


def test_exit_without_closing_is_quiet() -> None:
    assert python("import dsec\nsb = dsec.Sandbox.create()\nprint(sb.run('echo hi').stdout)\nsb.close()") == "hi\n\n"


def test_ignored_child_signals_do_no_harm() -> None:
    code = ("import dsec, signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
            "with dsec.Sandbox.create() as sb: print(sb.run('exit 3').exit_code)")
    assert python(code) == "3\n"
