# SPDX-License-Identifier: MIT
from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

sys.dont_write_bytecode = True

# Before anything opens a node: these tests must not meet a user's sandboxes.
TOP = tempfile.mkdtemp(prefix="dsec-python-", dir="/tmp")
os.environ["DSEC_ROOT"] = f"{TOP}/run"
os.environ["DSEC_IMAGES"] = f"{TOP}/images"

import dsec  # noqa: E402
import dsec._node  # noqa: E402
import leaks  # noqa: E402

T = TypeVar("T")


@pytest.fixture(scope="session", autouse=True)
def watch() -> Iterator[leaks.Watch]:
    with dsec.Node():
        pass  # its files are there before the first count
    yield leaks.Watch()
    shutil.rmtree(TOP)


@pytest.fixture(autouse=True)
def nothing_leaks(watch: leaks.Watch) -> Iterator[None]:
    gc.collect()
    before = leaks.snapshot(watch)
    yield
    gc.collect()
    if dsec._node._default is not None:
        dsec._node._default.close()  # with it go the launcher and the sandboxes that it keeps ready
    assert leaks.since(before, watch) == set()


@pytest.fixture
def sandbox() -> Iterator[dsec.Sandbox]:
    with dsec.Sandbox.create() as sb:
        yield sb


@pytest.fixture
def arun() -> Callable[[Coroutine[Any, Any, T]], T]:
    """Runs a coroutine in an event loop of its own, which must not be held up for long."""

    def run(main: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            return await asyncio.wait_for(main, 60)

        return asyncio.run(bounded())

    return run


def with_sandbox(use: Callable[[dsec.AsyncSandbox], Awaitable[T]], **options: Any) -> Coroutine[Any, Any, T]:
    async def main() -> T:
        async with await dsec.AsyncSandbox.create(**options) as sb:
            return await use(sb)

    return main()
