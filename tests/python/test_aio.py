# SPDX-License-Identifier: MIT
"""dsec.AsyncSandbox."""

from __future__ import annotations

import asyncio
import errno
import gc
import hashlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dsec
import pytest
from conftest import with_sandbox
from dsec import Reason

Run = Callable[[Any], Any]


def test_thirty_two_sandboxes_times_three_commands(arun: Run) -> None:
    async def one(n: int) -> list[str]:
        async with await dsec.AsyncSandbox.create(memory="256M", limits_optional=True) as sb:
            results = await asyncio.gather(*(sb.run(f"echo {n}.{i}; exit {i}") for i in range(3)))
            assert [r.exit_code for r in results] == [0, 1, 2]
            return [r.stdout for r in results]

    async def main() -> list[list[str]]:
        threads = threading.active_count()
        got = await asyncio.gather(*(one(n) for n in range(32)))
        assert threading.active_count() == threads
        return got

    assert arun(main()) == [[f"{n}.{i}\n" for i in range(3)] for n in range(32)]


def test_results(arun: Run) -> None:
    async def use(sb: dsec.AsyncSandbox) -> None:
        r = await sb.run("cat; echo e >&2; exit 2", stdin=b"\xff\0")
        assert (r.stdout_bytes, r.stderr, r.exit_code) == (b"\xff\0", "e\n", 2)
        assert (await sb.run(["sleep", "50"], timeout=0.2)).reason is Reason.TIMEOUT
        big = await sb.run("seq 1 300000", output_limit="4k")
        assert big.truncated and big.stdout_size > 1_000_000
        assert len((await sb.run("head -c 5000000 /dev/zero")).stdout_bytes) == 5_000_000
        assert (await sb.run("wc -c", stdin=bytes(5_000_000))).stdout.strip() == "5000000"
        with pytest.raises(dsec.ExecError, match="exited with 1"):
            await sb.run("false", check=True)
        with pytest.raises(dsec.Error) as e:
            await sb.run(["none-such"])
        assert (e.value.errno, e.value.step) == (errno.ENOENT, "exec")
        with pytest.raises(dsec.OptionError, match="^timeout"):
            await sb.run("true", timeout=-1)
        s = await sb.stats()
        assert s.execs and s.execs >= 6
        assert dsec.Capability.EXEC in sb.capabilities and sb.id in repr(sb)

    arun(with_sandbox(use))


def test_the_loop_goes_on_meanwhile(arun: Run) -> None:
    async def use(sb: dsec.AsyncSandbox) -> int:
        task = asyncio.ensure_future(sb.run("sleep 0.5"))
        ticks = 0
        while not task.done():
            await asyncio.sleep(0.01)
            ticks += 1
        return ticks

    assert arun(with_sandbox(use)) > 10


def test_cancelling_a_run_ends_the_command(arun: Run) -> None:
    async def use(sb: dsec.AsyncSandbox) -> None:
        beat = "setsid sh -c 'while :; do echo x >> /tmp/beat; sleep 0.02; done' & sleep 100"
        task = asyncio.ensure_future(sb.run(beat))
        while not (await sb.run("test -s /tmp/beat")).ok:
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(sb.run("sleep 100"), 0.1)
        await asyncio.sleep(0.3)
        sizes = (await sb.run("wc -c < /tmp/beat; sleep 0.3; wc -c < /tmp/beat; pidof sleep | wc -w")).stdout.split()
        assert sizes[0] == sizes[1] and sizes[2] == "0"

    arun(with_sandbox(use))


def test_cancelling_a_create_leaves_nothing(arun: Run) -> None:
    async def main() -> None:
        for retain in False, True:
            for delay in 0, 0.001, 0.005:
                task = asyncio.ensure_future(dsec.AsyncSandbox.create(retain=retain))
                await asyncio.sleep(delay)
                task.cancel()
                try:
                    sb = await task
                except asyncio.CancelledError:
                    continue
                await sb.stop()

    arun(main())


def test_cancelling_a_block_stops_the_sandbox(arun: Run) -> None:
    async def main() -> None:
        inside = asyncio.Event()

        async def work() -> None:
            async with await dsec.AsyncSandbox.create() as sb:
                inside.set()
                await sb.run("sleep 100")

        task = asyncio.ensure_future(work())
        await inside.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    arun(main())


def test_streams(arun: Run) -> None:
    async def use(sb: dsec.AsyncSandbox) -> None:
        async with await sb.start("echo a; read x; echo b$x; echo e >&2", stdin=True) as e:
            assert await e.read(10) == b"a\n"
            assert e.poll() is None
            await e.write("word\n")
            await e.close_stdin()
            out, err = await asyncio.gather(e.read(), e.read(stream="stderr"))
            assert (out, err) == (b"bword\n", b"e\n")
            assert (await e.wait()).ok and e.poll() == await e.wait(0)
        async with await sb.start("for i in 1 2 3; do echo $i; done; echo x >&2") as e:
            got = {"stdout": b"", "stderr": b""}
            async for stream, data in e:
                got[stream] += data
            assert got == {"stdout": b"1\n2\n3\n", "stderr": b"x\n"}

    arun(with_sandbox(use))


def test_much_of_both_streams_and_stdin(arun: Run) -> None:
    data = os.urandom(1 << 20) * 4

    async def use(sb: dsec.AsyncSandbox) -> None:
        async with await sb.start("tee /dev/stderr", stdin=True) as e:

            async def feed() -> None:
                await e.write(data)
                await e.close_stdin()

            _, out, err = await asyncio.gather(feed(), e.read(), e.read(stream="stderr"))
            assert out == data and err == data
        async with await sb.start("cat", stdin=True) as e:
            await e.write(data)  # nobody reads
            await e.close_stdin()
            assert (await e.wait(60)).ok
            assert await e.read() == data

    arun(with_sandbox(use))


def test_an_idle_stream_costs_no_cpu(arun: Run) -> None:
    async def use(sb: dsec.AsyncSandbox) -> float:
        async with await sb.start("yes") as e:
            await e.read(2)
            waiting = asyncio.ensure_future(e.read(1, stream="stderr"))
            await asyncio.sleep(0.1)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            before = time.process_time()
            await asyncio.sleep(0.5)  # output is there, and nobody asks for it
            return time.process_time() - before

    assert arun(with_sandbox(use)) < 0.25


def test_terminal(arun: Run) -> None:
    async def use(sb: dsec.AsyncSandbox) -> None:
        async with await sb.start("stty size; read x; stty size", tty=(10, 20)) as e:
            assert await e.read(100) == b"10 20\r\n"
            e.resize(11, 21)
            await e.write("\n")
            assert await e.read() == b"\r\n11 21\r\n"

    arun(with_sandbox(use))


def test_wait_with_a_timeout_and_signals(arun: Run) -> None:
    async def use(sb: dsec.AsyncSandbox) -> None:
        for stream in True, False:
            async with await sb.start("sleep 100", stream=stream) as e:
                with pytest.raises(dsec.WaitTimeout):
                    await e.wait(0.1)
                e.signal(15)
                assert (await e.wait(60)).signal == 15

    arun(with_sandbox(use))


def test_closing_under_a_task_that_waits(arun: Run) -> None:
    async def use(sb: dsec.AsyncSandbox) -> None:
        e = await sb.start("sleep 100")
        task = asyncio.ensure_future(e.read(1))
        await asyncio.sleep(0.05)
        e.close()
        with pytest.raises(ValueError, match="closed"):
            await task
        running = asyncio.ensure_future(sb.run("sleep 100"))
        await asyncio.sleep(0.05)
        await sb.stop()
        with pytest.raises(dsec.SandboxLost):
            await running
        with pytest.raises(ValueError, match="closed"):
            await sb.run("true")
        await sb.stop()

    arun(with_sandbox(use))


def test_files(arun: Run, tmp_path: Path) -> None:
    async def use(sb: dsec.AsyncSandbox) -> None:
        await sb.files.write("/a/b/c", "text", mode=0o600)
        assert await sb.files.read("/a/b/c") == b"text" and await sb.files.read_text("/a/b/c") == "text"
        assert (await sb.run("stat -c %a /a/b/c")).stdout == "600\n"
        await sb.files.write("/a/empty", b"")
        assert await sb.files.read("/a/empty") == b""
        for path, code in ("/none", errno.ENOENT), ("/etc", errno.EISDIR), ("/dev/zero", errno.EINVAL):
            with pytest.raises(dsec.Error, match=path) as e:
                await sb.files.read(path)
            assert (e.value.errno, e.value.step) == (code, "file")
        with pytest.raises(dsec.Error) as e:
            await sb.files.write("/etc", b"x")
        assert e.value.errno == errno.EISDIR
        for source, code in (tmp_path / "none", errno.ENOENT), (tmp_path, errno.EISDIR), ("/dev/null", errno.EINVAL):
            with pytest.raises(dsec.Error) as e:
                await sb.files.put(source, "/tmp/x")
            assert e.value.errno == code
        with pytest.raises(dsec.Error):
            await sb.files.get("/none", tmp_path / "t")
        with pytest.raises(dsec.Error) as e:
            await sb.files.put(__file__, "/etc")
        assert e.value.errno == errno.EISDIR and os.listdir(tmp_path) == []

    arun(with_sandbox(use))


def test_fifty_megabytes_each_way(arun: Run, tmp_path: Path) -> None:
    data = os.urandom(1 << 20) * 50
    here = tmp_path / "here"

    async def use(sb: dsec.AsyncSandbox) -> None:
        await sb.files.write("/tmp/big", data)
        assert hashlib.sha256(await sb.files.read("/tmp/big")).digest() == hashlib.sha256(data).digest()
        await sb.files.get("/tmp/big", here)
        here.chmod(0o700)
        await sb.files.put(here, "/tmp/again")
        assert (await sb.run("cmp /tmp/big /tmp/again && stat -c %a /tmp/again")).stdout == "700\n"

    arun(with_sandbox(use))


def test_attach_and_names(arun: Run) -> None:
    async def use(sb: dsec.AsyncSandbox) -> None:
        with pytest.raises(dsec.Error) as e:
            await dsec.AsyncSandbox.create(name="async-name")
        assert e.value.errno == errno.EEXIST
        async with await dsec.AsyncSandbox.attach("async-name") as other:
            assert other.id == sb.id
        assert (await sb.run("true")).ok
        with pytest.raises(dsec.Error) as e:
            await dsec.AsyncSandbox.create(image="/no/such")
        assert e.value.errno == errno.ENOENT

    arun(with_sandbox(use, name="async-name"))


def test_null_backend_has_no_descriptor(arun: Run) -> None:
    async def use(sb: dsec.AsyncSandbox) -> None:
        assert (await sb.run(["echo", "x"])).stdout == "x\n"

    arun(with_sandbox(use, backend="null"))


def test_what_is_not_closed_is_closed_with_a_warning(arun: Run) -> None:
    async def main() -> None:
        sb = await dsec.AsyncSandbox.create()
        with pytest.warns(ResourceWarning, match="dsec.AsyncExec was not closed"):
            e = await sb.start("sleep 100")
            del e
            gc.collect()
        with pytest.warns(ResourceWarning, match="dsec.AsyncSandbox was not closed"):
            del sb
            gc.collect()

    arun(main())
