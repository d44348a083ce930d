# SPDX-License-Identifier: MIT
"""The command line: look at this machine and its sandboxes, run commands, clean up."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

from . import __version__
from ._errors import Error, SandboxLost, UnknownOutcome
from ._node import Node, probe
from ._result import Reason, Result
from ._sandbox import Sandbox

USAGE = 2
FAILED = 125  # dsec itself failed; 126 and 127: the command could not be executed
NOT_STARTED = {2: 127}  # ENOENT
ENDED = {Reason.TIMEOUT: 124, Reason.OOM: 137, Reason.OUTPUT_LIMIT: 137}


def exit_status(r: Result) -> int:
    """As a shell gives it."""
    if r.reason is Reason.EXITED:
        return r.exit_code
    return 128 + r.signal if r.reason is Reason.SIGNALED else ENDED[r.reason]


def print_json(value: object) -> None:
    json.dump(value, sys.stdout, default=lambda o: o.name if hasattr(o, "name") else str(o))
    sys.stdout.write("\n")


def print_table(columns: Sequence[str], rows: list[list[str]]) -> None:
    """With rich on a terminal, else lines of aligned columns."""
    try:
        if not sys.stdout.isatty():
            raise ImportError
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        widths = [max(map(len, column)) for column in zip(columns, *rows)]
        for row in [[c.upper() for c in columns], *rows]:
            print("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip())
        return
    table = Table(*columns)
    for row in rows:
        table.add_row(*map(Text, row))  # as it is: names are not markup
    Console().print(table)


def do_probe(args: argparse.Namespace) -> int:
    with Node(args.root, args.images) as node:
        items = probe(node)
    if args.json:
        print_json([dataclasses.asdict(i) for i in items])
        return 0
    print_table(["what", "here", "why", "effect"],
                [[i.name, "yes" if i.available else "no", i.why, i.effect] for i in items])
    return 0


def age(seconds: float) -> str:
    s = int(max(0.0, seconds))
    for unit, size in ("d", 86400), ("h", 3600), ("m", 60):
        if s >= 2 * size:
            return f"{s // size}{unit}"
    return f"{s}s"


def do_ps(args: argparse.Namespace) -> int:
    with Node(args.root, args.images) as node:
        infos = node.list()
    if args.json:
        print_json([{**dataclasses.asdict(i), "state": i.state.name.lower()} for i in infos])
        return 0
    print_table(["id", "name", "run", "backend", "image", "state", "age"],
                [[i.id, i.name or "-", i.run or "-", i.backend, i.image, i.state.name.lower(),
                  age(time.time() - i.created)] for i in infos])
    return 0


def run_in(sandbox: Sandbox, args: argparse.Namespace) -> int:
    """Runs the command and gives its output as it comes."""
    stdin = sys.stdin.buffer.read() if args.stdin else b""  # unasked, a pipe that nobody closes would hold us up
    options: dict[str, Any] = {"timeout": args.timeout, "workdir": args.workdir, "user": args.user,
                               "env": dict(pair.split("=", 1) for pair in args.env)}
    if args.json:
        r = sandbox.run(args.command, stdin=stdin, **options)
        print_json({**dataclasses.asdict(r), "reason": r.reason.name, "stdout": r.stdout, "stderr": r.stderr,
                    "stdout_bytes": None, "stderr_bytes": None} | {"truncated": r.truncated})
        return exit_status(r)
    if args.tty:
        return run_tty(sandbox, args.command, options)
    with sandbox.start(args.command, stdin=stdin, **options) as e:
        for stream, data in e:
            out = sys.stdout.buffer if stream == "stdout" else sys.stderr.buffer
            out.write(data)
            out.flush()
        return exit_status(e.wait())


def run_tty(sandbox: Sandbox, command: list[str], options: dict[str, Any]) -> int:
    """The command on a terminal of its own, joined to ours."""
    import select
    import termios
    import tty

    keyboard = sys.stdin.fileno()
    if not os.isatty(keyboard):
        raise SystemExit("dsec: --tty: stdin is not a terminal")
    size = shutil.get_terminal_size()
    env = {"TERM": os.environ.get("TERM", "linux"), **options.pop("env")}
    before = termios.tcgetattr(keyboard)
    with sandbox.start(command, tty=(size.lines, size.columns), env=env, **options) as e:

        def resized(_signal: int, _frame: FrameType | None) -> None:
            now = os.get_terminal_size(keyboard)
            wanted.append((now.lines, now.columns))

        wanted: list[tuple[int, int]] = []
        former = signal.signal(signal.SIGWINCH, resized)
        waits = select.poll()
        waits.register(keyboard, select.POLLIN)
        waits.register(e._handle.fd, select.POLLIN)
        try:
            tty.setraw(keyboard)
            while True:
                while data := e._handle.read(1, 1 << 16):
                    os.write(1, data)
                if data == b"":
                    return exit_status(e.wait())
                while wanted:
                    e.resize(*wanted.pop(0))
                if (keyboard, select.POLLIN) in waits.poll(500):
                    keys = os.read(keyboard, 4096)
                    if keys:
                        e.write(keys)
                    else:
                        waits.unregister(keyboard)
        finally:
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
            signal.signal(signal.SIGWINCH, former)


def do_exec(args: argparse.Namespace) -> int:
    with Node(args.root, args.images) as node, Sandbox.attach(args.id, node=node) as sandbox:
        return run_in(sandbox, args)


def do_run(args: argparse.Namespace) -> int:
    with Node(args.root, args.images) as node:
        with Sandbox.create(args.backend, image=args.image, name=args.name, cpu=args.cpu, memory=args.memory,
                            pids=args.pids, disk=args.disk, network=args.network, retain=args.retain,
                            limits_optional=args.limits_optional, node=node) as sandbox:
            if args.retain and not args.command:
                print(sandbox.id)
                return 0
            return run_in(sandbox, args)


def do_stop(args: argparse.Namespace) -> int:
    status, stopped = 0, []
    with Node(args.root, args.images) as node:
        for name in args.id:
            try:
                with Sandbox.attach(name, node=node) as sandbox:
                    stopped.append(sandbox.id)
                    sandbox.stop()
            except (Error, SandboxLost) as e:
                print(f"dsec: {name}: {e}", file=sys.stderr)
                status = 1
    if args.json:
        print_json(stopped)
    return status


def do_reap(args: argparse.Namespace) -> int:
    with Node(args.root, args.images) as node:
        node.reap()
        stats = node.stats()
    if args.json:
        print_json(dataclasses.asdict(stats))
    else:
        print(f"{stats.reaped} reaped since the node was made, {stats.live} live")
    return 0


def _variable(text: str) -> str:
    name, equals, _ = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=value")
    return text


def _command_arguments(p: argparse.ArgumentParser, needed: bool = True) -> None:
    p.add_argument("-t", "--tty", action="store_true", help="on a terminal, joined to this one")
    p.add_argument("--stdin", action="store_true", help="with what can be read from stdin; else it reads the end")
    p.add_argument("-e", "--env", type=_variable, action="append", default=[], metavar="NAME=VALUE")
    p.add_argument("-w", "--workdir")
    p.add_argument("-u", "--user", help="root, uid, or uid:gid")
    p.add_argument("-T", "--timeout", type=float, metavar="SECONDS")
    p.add_argument("command", nargs="+" if needed else "*", help="after --; not through a shell")


def parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for programs to read")
    common.add_argument("--root", default=argparse.SUPPRESS, help="state directory")
    common.add_argument("--images", default=argparse.SUPPRESS, help="image directory")
    p = argparse.ArgumentParser(prog="python -m dsec", description=__doc__, parents=[common])
    p.add_argument("--version", action="version", version=__version__)
    sub = p.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, call: Any, text: str) -> argparse.ArgumentParser:
        s = sub.add_parser(name, help=text, description=text, parents=[common])
        s.set_defaults(call=call)
        return s

    add("probe", do_probe, "what this machine can do, and what to change")
    add("ps", do_ps, "list the sandboxes of this node")
    add("reap", do_reap, "remove what dead sandboxes left")
    add("stop", do_stop, "end sandboxes").add_argument("id", nargs="+", help="id or name")
    e = add("exec", do_exec, "run a command in a sandbox; its exit status is passed on")
    e.add_argument("id", help="id or name")
    _command_arguments(e)
    r = add("run", do_run, "run a command in a new sandbox; its exit status is passed on")
    r.add_argument("-b", "--backend", default="container")
    r.add_argument("-i", "--image", default="host", help='"host" or a directory')
    r.add_argument("-n", "--name")
    r.add_argument("-c", "--cpu", type=float, help="CPUs, such as 0.5")
    r.add_argument("-m", "--memory", help="such as 512M")
    r.add_argument("-p", "--pids", type=int)
    r.add_argument("-d", "--disk", help="size of the writable top, such as 2G")
    r.add_argument("--network", choices=["none", "host"], default="none")
    r.add_argument("--limits-optional", action="store_true", help="go on without limits that cannot be enforced here")
    r.add_argument("--retain", action="store_true", help="keep it; without a command: print its id")
    _command_arguments(r, needed=False)
    return p


def main(argv: Sequence[str] | None = None) -> int:
    p = parser()
    # Their defaults are here, so that they may stand before and after the command's name.
    args = p.parse_args(argv, argparse.Namespace(json=False, root=None, images=None))
    if args.call is do_run and not args.command and not args.retain:
        p.error("run: a command is needed, or --retain")
    try:
        return int(args.call(args))
    except UnknownOutcome as e:
        print(f"dsec: {e}", file=sys.stderr)
        return FAILED
    except Error as e:
        print(f"dsec: {e}", file=sys.stderr)
        if e.step == "exec":
            return NOT_STARTED.get(e.errno or 0, 126)
        return USAGE if e.step == "options" else FAILED
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
