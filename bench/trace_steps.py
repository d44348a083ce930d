#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows where one create, one exec and one stop spend their time, system call by system call, in all processes.

    make bench-node_open && bench/trace_steps.py [--cycles 6] [--min 0.1] [--gap 10]

Runs `cycle trace` under `perf trace` (package linux-perf; root), which follows the launcher, keepers and agents and
costs far less than ptrace, so that the proportions hold. Of the last cycle, for each step: its duration, then every call that
took --min milliseconds or longer: when it began (ms from the step's beginning), how long it took, who made it. A call
that waits for another process is as long as what it waits for: read from the innermost. Then, for each process, the
sum of time within calls that do not wait (poll, recvmsg, ... left out): kernel work, the part that can be saved.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

LINE = re.compile(r"^ *([\d.]+) \( *([\d.]*) *(?:ms)? *\): (\S+?)/(\d+) +(?:\.\.\. \[continued\]: )?(\w+)\((.*)$")
STEPS = ("create", "exec", "stop")
WAITS = {"poll", "ppoll", "epoll_wait", "epoll_pwait", "recvmsg", "recvfrom", "clock_nanosleep", "nanosleep", "select",
         "pselect6", "futex", "wait4", "waitid", "restart_syscall"}


def record(options):
    """Lines of the trace as (begin, duration, process, call, arguments)."""
    with tempfile.TemporaryDirectory(prefix="dsec-trace-") as tmp:
        out = os.path.join(tmp, "trace")
        env = dict(os.environ, DSEC_ROOT=f"{tmp}/root", DSEC_IMAGES=f"{tmp}/images")
        cycle = os.path.join(options.build, "bench", "cycle")
        # -m: a ring that holds a cycle, so that no event is lost
        subprocess.run(["perf", "trace", "-m", "4M", "-o", out, cycle, "trace", "--n", str(options.cycles),
                        "--gap-ms", str(options.gap)], env=env, check=True)
        with open(out, encoding="utf-8", errors="replace") as f:
            found = [m for m in map(LINE.match, f) if m]
    calls = [(float(m[1]), float(m[2] or 0), f"{m[3]}/{m[4]}", m[5], m[6].strip()) for m in found]
    return sorted(calls)


def steps(calls):
    """(name, begin, end) of the last whole cycle: our process has the name of the step that it is in."""
    begins = []
    for begin, _, who, _, _ in calls:
        name = who.split("/")[0]
        if name in (*STEPS, "rest") and (not begins or begins[-1][0] != name):
            begins.append((name, begin))
    for i in range(len(begins) - 4, -1, -1):
        if [b[0] for b in begins[i:i + 4]] == [*STEPS, "rest"]:
            return [(STEPS[k], begins[i + k][1], begins[i + k + 1][1]) for k in range(3)]
    sys.exit("no whole cycle in the trace")


def show(name, begin, end, calls, shortest):
    print(f"\n{name}: {end - begin:.2f} ms")
    # a call belongs to the step in which it ended; one that waited from earlier on is shown with a negative beginning
    inside = [c for c in calls if begin <= c[0] + c[1] < end]
    for at, took, who, call, args in inside:
        if took >= shortest:
            print(f"  {at - begin:8.3f} {took:8.3f}  {who:<22} {call}({args[:90]}")
    busy = {}
    for _, took, who, call, _ in inside:
        if call not in WAITS:
            total = busy.setdefault(who, [0, 0.0])
            total[0] += 1
            total[1] += took
    for who, (n, took) in sorted(busy.items(), key=lambda b: -b[1][1]):
        print(f"  {who:<22} {took:7.3f} ms in {n} calls")


def main():
    build = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build")
    parser = argparse.ArgumentParser(description="Shows where create, exec and stop spend their time.")
    parser.add_argument("--cycles", type=int, default=6, help="cycles to run; the last one is shown")
    parser.add_argument("--min", type=float, default=0.1, help="shortest call that is shown, in ms")
    parser.add_argument("--gap", type=int, default=10, help="pause before each cycle, in ms")
    parser.add_argument("--build", default=build, help="directory of libdsec.so and bench/")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    calls = record(options)
    for name, begin, end in steps(calls):
        show(name, begin, end, calls, options.min)


if __name__ == "__main__":
    main()
