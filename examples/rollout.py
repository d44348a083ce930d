#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Group rollouts in sandboxes, as a GRPO trainer does them: G prompts times N rollouts, all at once with asyncio.

Each rollout has a sandbox of its own. A policy writes files, tests run, and the failure text goes back to the policy
until the tests pass or it gives up. Put a model where ScriptedPolicy is. Read from rollout() outwards.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import errno
import json
import os
import pathlib
import random
import signal
import statistics
import sys
import time

import dsec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

WORKDIR = "/work"

Files = dict[str, bytes]  # path below WORKDIR: contents


def read_files(top: pathlib.Path) -> Files:
    return {str(p.relative_to(top)): p.read_bytes() for p in sorted(top.rglob("*")) if p.is_file()}


class Task:
    """One directory of the task tree: a prompt, tests, the line that runs them, and what the scripted policy does."""

    def __init__(self, top: pathlib.Path):
        self.name = top.name
        self.prompt = (top / "prompt.txt").read_text()
        self.run = (top / "run").read_text().strip()
        self.tests = read_files(top / "tests")
        self.attempts = {  # name: the files of each step
            attempt.name: [read_files(step) for step in sorted(attempt.iterdir(), key=lambda p: int(p.name))]
            for attempt in sorted((top / "attempts").iterdir())}


class ScriptedPolicy:
    """Stands where a model would: observation in, files to write out, None to end the episode."""

    def __init__(self, task: Task, number: int):
        self.name, self.steps = list(task.attempts.items())[number % len(task.attempts)]
        self.prompt = task.prompt  # a model is asked this first
        self.next = 0
        self.complaint = ""

    async def act(self, observation: str | None) -> Files | None:
        if observation is not None:  # None at the first step, then what the tests printed
            lines = observation.strip().splitlines()
            self.complaint = lines[-1] if lines else ""  # a model would be told all of it, and think here
        if self.next == len(self.steps):
            return None
        self.next += 1
        return self.steps[self.next - 1]


@dataclasses.dataclass
class Rollout:
    """What became of one rollout; a line of the JSON file."""

    task: str
    prompt: int
    rollout: int
    attempt: str
    outcome: str = "interrupted"
    reward: float | None = None  # None: nothing is known about the policy, which is not the same as 0.0
    advantage: float | None = None
    steps: int = 0
    create_ms: float | None = None
    first_exec_ms: float | None = None
    complaint: str = ""
    error: str = ""
    begin: float = 0.0  # of the create call, on the monotonic clock

    def elapsed_ms(self) -> float:
        return (time.monotonic() - self.begin) * 1e3


OUTCOMES = {
    dsec.Reason.EXITED: "failed tests",
    dsec.Reason.SIGNALED: "failed tests",
    dsec.Reason.TIMEOUT: "timeout",
    dsec.Reason.OOM: "out of memory",
    dsec.Reason.OUTPUT_LIMIT: "output limit",
}  # a lost sandbox and an unknown outcome are exceptions, not results


class Limits:
    """How many rollouts may do the same at once. All others wait; a policy that thinks holds no slot."""

    def __init__(self, jobs: int):
        self.creates = asyncio.Semaphore(jobs)
        self.tests = asyncio.Semaphore(jobs)


async def create(args: argparse.Namespace) -> dsec.AsyncSandbox:
    while True:
        try:
            return await dsec.AsyncSandbox.create(
                "container", image=args.image, workdir=WORKDIR, network="none",
                cpu=1, memory=args.memory, disk="64M", pids=256)
        except dsec.Error as e:
            if not e.retry:  # else nothing was started for want of room, which comes when other rollouts end
                raise
        await asyncio.sleep(0.2)


async def episode(sb: dsec.AsyncSandbox, task: Task, policy: ScriptedPolicy, out: Rollout, limits: Limits,
                  timeout: float) -> str:
    observation, outcome = None, "failed tests"
    while (action := await policy.act(observation)) is not None:
        out.steps += 1
        # the tests after the policy's files, and at each step anew: what it did to them does not last
        for path, data in {**action, **task.tests}.items():
            await sb.files.write(f"{WORKDIR}/{path}", data)
            out.first_exec_ms = out.first_exec_ms or out.elapsed_ms()
        async with limits.tests:
            r = await sb.run(task.run, timeout=timeout, workdir=WORKDIR, output_limit="256K", limit_kills=True)
        if r.ok:
            return "passed"
        outcome = OUTCOMES[r.reason]
        observation = r.stdout + r.stderr
    return outcome


async def rollout(task: Task, policy: ScriptedPolicy, out: Rollout, limits: Limits, args: argparse.Namespace) -> None:
    try:
        async with limits.creates:
            out.begin = time.monotonic()
            sandbox = await create(args)
        async with sandbox as sb:  # stopped at the end, however this block is left
            out.create_ms = out.elapsed_ms()
            out.outcome = await episode(sb, task, policy, out, limits, args.timeout)
    except dsec.Error as e:
        # after its first command the policy itself may be why writing fails: a full disk, a directory in the way
        inside = out.steps > 1 and e.step in ("file", "spawn", "exec") and e.errno != errno.EPIPE
        out.outcome = "failed tests" if inside else "infrastructure"
        out.error = f"{e.step}: {e}"
    if out.outcome != "infrastructure":
        out.reward = 1.0 if out.outcome == "passed" else 0.0
    out.complaint = policy.complaint


def set_advantages(group: list[Rollout]) -> None:
    """(r - mean) / std within a group; rollouts without a reward take no part."""
    rewards = [r.reward for r in group if r.reward is not None]
    for r in group:
        if r.reward is not None:
            r.advantage = (r.reward - statistics.fmean(rewards)) / (statistics.pstdev(rewards) + 1e-6)


def print_groups(console: Console, groups: list[list[Rollout]]) -> None:
    table = Table("task", "rewards", "mean", "adv min", "adv max", "steps")
    for column in table.columns[2:]:
        column.justify = "right"
    for group in groups:
        set_advantages(group)
        marks = " ".join("-" if r.reward is None else f"{r.reward:.0f}" for r in group)
        rewards = [r.reward for r in group if r.reward is not None]
        advantages = [r.advantage for r in group if r.advantage is not None]
        values = [statistics.fmean(rewards), min(advantages), max(advantages)] if rewards else []
        numbers = [f"{v:.2f}" for v in values] or ["-"] * 3
        table.add_row(group[0].task, marks, *numbers, f"{statistics.fmean(r.steps for r in group):.1f}")
    console.print(table)


def print_totals(console: Console, results: list[Rollout], seconds: float) -> None:
    table = Table(show_header=False, box=None)
    rewards = [r.reward for r in results if r.reward is not None]
    table.add_row("rollouts", f"{len(results)} in {seconds:.1f} s, {sum(r.steps for r in results)} steps")
    if rewards:
        table.add_row("mean reward", f"{statistics.fmean(rewards):.3f} over {len(rewards)}")
    for label, field in ("create", "create_ms"), ("create to first exec", "first_exec_ms"):
        if ms := sorted(v for r in results if (v := getattr(r, field)) is not None):
            table.add_row(label, f"p50 {ms[len(ms) // 2]:.1f} ms, p99 {ms[len(ms) * 99 // 100]:.1f} ms")
    for outcome in ["passed", *dict.fromkeys(OUTCOMES.values()), "infrastructure", "interrupted"]:
        table.add_row(outcome, str(sum(r.outcome == outcome for r in results)))
    console.print(table)


async def run_all(args: argparse.Namespace, progress: Progress) -> tuple[list[list[Rollout]], bool]:
    tasks = [Task(p) for p in sorted(pathlib.Path(args.tasks).iterdir()) if p.is_dir()]
    if args.seed:
        random.Random(args.seed).shuffle(tasks)
    limits, groups, coroutines = Limits(args.jobs), [], []
    for prompt in range(args.prompts):
        spread = prompt * len(tasks) // args.prompts if args.prompts < len(tasks) else prompt
        task = tasks[spread % len(tasks)]
        policies = [ScriptedPolicy(task, number) for number in range(args.rollouts)]
        groups.append([Rollout(task.name, prompt, number, p.name) for number, p in enumerate(policies)])
        coroutines += [rollout(task, p, out, limits, args) for p, out in zip(policies, groups[-1])]

    running = [asyncio.create_task(c) for c in coroutines]
    for signo in (signal.SIGINT, signal.SIGTERM):  # cancelling leaves each "async with", which stops the sandbox
        asyncio.get_running_loop().add_signal_handler(signo, lambda: [t.cancel() for t in running])
    bar = progress.add_task("", total=len(running), mean=0.0)
    for finished in asyncio.as_completed(running):
        with contextlib.suppress(asyncio.CancelledError):
            await finished
        rewards = [r.reward for group in groups for r in group if r.reward is not None]
        progress.update(bar, advance=1, mean=statistics.fmean(rewards) if rewards else 0.0)
    return groups, any(t.cancelled() for t in running)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    option = parser.add_argument
    option("-p", "--prompts", type=int, default=8)
    option("-n", "--rollouts", type=int, default=8, help="of each prompt")
    option("-t", "--tasks", default=pathlib.Path(__file__).parent / "tasks")
    option("-T", "--timeout", type=float, default=5.0, help="seconds that the tests may take")
    option("-m", "--memory", default="256M", help="of each sandbox")
    option("-j", "--jobs", type=int, default=2 * (os.cpu_count() or 1), help="creates, and tests, at once")
    option("-i", "--image", default="host")
    option("-s", "--seed", type=int, default=0, help="draws the tasks in another order")
    option("-o", "--json", help="file for one JSON object per rollout")
    option("-q", "--quiet", action="store_true", help="no progress")
    args = parser.parse_args()

    begin = time.monotonic()
    columns = BarColumn(), MofNCompleteColumn(), TextColumn("mean reward {task.fields[mean]:.2f}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), disable=args.quiet) as progress:
        groups, interrupted = asyncio.run(run_all(args, progress))
    results = [r for group in groups for r in group]
    print_groups(Console(), groups)
    print_totals(Console(), results, time.monotonic() - begin)
    if args.json:
        pathlib.Path(args.json).write_text("".join(json.dumps(dataclasses.asdict(r)) + "\n" for r in results))
    failed = [r for r in results if r.outcome == "infrastructure"]
    for r in failed[:10]:
        print(f"rollout: {r.task} #{r.rollout}: {r.error}", file=sys.stderr)
    return 130 if interrupted else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
