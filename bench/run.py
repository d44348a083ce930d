#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures dsec and its peers: `make bench`, `make bench-NAME`, or build/bench/* made and bench/run.py [NAME ...].

Names: container_cycle container_create exec container_rate container_memory node_open. The samples are taken by the C
programs beside this file; here they become rows of build/bench.jsonl (bench, metric, value, unit, n, peer, peer_value,
ratio = value / peer_value, note), one line for each peer, and a table. Everything happens in a temporary node below
/tmp, which is removed at the end, also of a run that failed or was interrupted. Exit status: 0 when every measurement
was made and kept its limit, else 1; a peer that is not installed is a skip, printed and counted.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the source tree stays clean

from peers import BenchError, Peers, Skip  # noqa: E402
from report import Report, machine, percentile, spread  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
OPEN_LIMIT_MS = 20
SLOW = {"runc": 4}  # a quarter of the samples


class Bench:
    """One run: a temporary node, the programs, the samples so far."""

    def __init__(self, options, report):
        self.options, self.report = options, report
        self.tmp = tempfile.mkdtemp(prefix="dsec-bench-")
        self.env = dict(os.environ, DSEC_ROOT=f"{self.tmp}/root", DSEC_IMAGES=f"{self.tmp}/images", LC_ALL="C")
        self.child = None
        self.peers = None
        self.shared = {}  # samples that serve two names

    def bin(self, name):
        return os.path.join(self.options.build, "bench", name)

    def run(self, name, *args, timeout=900):
        """Samples of one program as {who: {what: [numbers]}}."""
        argv = [self.bin(name), *map(str, args)]
        # a session of its own: an interrupt at the terminal reaches us first, and we end it as a group
        self.child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, env=self.env, cwd="/", start_new_session=True)
        out, err = self.child.communicate(timeout=timeout)
        status, self.child = self.child.returncode, None
        if status:
            raise BenchError(f"{name} {args[0]}: exit status {status}: {err.strip()}")
        sys.stderr.write(err)  # a warning of a peer's
        samples = {}
        for line in out.splitlines():
            who, what, number = line.split("\t")
            samples.setdefault(who, {}).setdefault(what, []).append(float(number))
        return samples

    def prepare(self):
        """A first sandbox makes the image "host", which is the peers' root too."""
        self.run("cycle", "cycle", "--n", 1, "--warmup", 0)
        host = os.path.join(self.tmp, "images/host")
        trees = [d for d in os.listdir(host) if not d.startswith(".")]
        if len(trees) != 1:
            raise BenchError(f"image \"host\": {len(trees)} trees in {host}")
        self.peers = Peers(self.tmp, os.path.join(host, trees[0]), self.bin("cycle"), self.env)

    def contestants(self, bench, *names):
        """The peers that are there; the others are noted as skips of this bench."""
        found = []
        for name in names:
            try:
                found.append(self.peers.get(name))
                found[-1].every = SLOW.get(name, 1)
            except Skip as skip:
                self.report.skip(bench, name, skip)
        return found

    def end_child(self):
        child, self.child = self.child, None
        if not child:
            return
        for how in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child.pid, how)  # not reaped yet, so the number is still its own
                child.communicate(timeout=10)
                return
            except (subprocess.TimeoutExpired, ProcessLookupError):
                pass

    def clean(self):
        """Sandboxes end with the program that made them; wait for that, then remove all there is."""
        self.end_child()
        if self.peers:
            self.peers.clean()
        sandboxes = f"{self.tmp}/root/sb"
        deadline = time.monotonic() + 20
        while os.path.isdir(sandboxes) and os.listdir(sandboxes) and time.monotonic() < deadline:
            time.sleep(0.1)
        if os.path.isdir(sandboxes) and os.listdir(sandboxes):
            subprocess.run([self.bin("open"), "reap"], env=self.env, timeout=60, check=False)
        with open("/proc/self/mounts", encoding="utf-8") as f:
            left = [line.split()[1] for line in f if line.split()[1].startswith(self.tmp + "/")]
        for mount in reversed(left):
            subprocess.run(["umount", "-l", mount], check=False)
        shutil.rmtree(self.tmp)


def latency(bench, name, ours, theirs, peers, note=""):
    """Rows p50 and p99 for each peer, or one of each without a peer."""
    for p in (50, 99):
        value = percentile(ours, p)
        own = f"{spread(ours)}{note}"
        if not peers:
            bench.report.add(name, f"p{p}", value, "ms", len(ours), own)
        for peer in peers:
            run = theirs[peer.name]["run"]
            their = f"{peer.what}, n {len(run)} {spread(run)}"
            bench.report.add(name, f"p{p}", value, "ms", len(ours), f"{own}; {their}", peer.name, percentile(run, p))


def cycle_samples(bench, peers):
    """One measurement serves container_cycle and container_create."""
    if "cycle" not in bench.shared:
        options = [w for peer in peers for w in peer.option()]
        bench.shared["cycle"] = bench.run("cycle", "cycle", "--n", bench.options.n, *options)
    return bench.shared["cycle"]


def ahead(ours, part):
    """Ours in a hurry and without a head start: the library keeps sandboxes ready, made while others are measured."""
    busy, cold = (percentile(ours[f"{how}_{part}"], 50) for how in ("busy", "cold"))
    return f", p50 without pauses {busy:.3g}, with none made ahead {cold:.3g}"


def container_cycle(bench, name):
    peers = bench.contestants(name, "crun", "bwrap", "runc", "floor")
    samples = cycle_samples(bench, peers)
    ours = samples["dsec"]
    parts = " + ".join(f"{k} {percentile(ours[k], 50):.3g}" for k in ("create", "exec", "stop"))
    latency(bench, name, ours["cycle"], samples, peers, f", {parts}{ahead(ours, 'cycle')}")


def container_create(bench, name):
    peers = bench.contestants(name, "floor")
    samples = cycle_samples(bench, peers)
    ours = samples["dsec"]
    latency(bench, name, ours["create"], samples, peers, ahead(ours, "create"))


def exec_true(bench, name):
    peers = bench.contestants(name, "floor")
    options = [w for peer in peers for w in peer.option()]
    samples = bench.run("cycle", "exec", "--n", bench.options.n, "--gap-ms", 2, *options)
    latency(bench, name, samples["dsec"]["exec"], samples, peers)


def container_rate(bench, name):
    peers = bench.contestants(name, "crun")
    slices = (2, 700) if bench.options.quick else (5, 2000)
    options = [w for peer in peers for w in peer.option()]
    samples = bench.run("rate", "run", "--n", slices[0], "--slice-ms", slices[1], *options)
    ours = samples["dsec"]["per_second"]
    note = f"{spread(ours)} over {slices[0]} slices of {slices[1] / 1e3:g} s, {os.cpu_count()} processes"
    for peer in peers or [None]:
        run = samples[peer.name]["per_second"] if peer else None
        more = f"; {peer.what}, {spread(run)}" if peer else ""
        bench.report.add(name, "per_second", percentile(ours, 50), "1/s", len(ours), note + more,
                         peer and peer.name, run and percentile(run, 50))


def container_memory(bench, name):
    n = bench.options.live
    ours = {k: v[0] for k, v in bench.run("memory", "run", "--n", n)["dsec"].items()}
    note = (f"whole machine, fall of MemAvailable {ours['available']:.3g}, of it slab {ours['slab']:.3g}, "
            f"page tables, stacks and per-cpu {ours['kernel']:.3g}, "
            f"Pss keeper {ours['keeper']:.3g} + agent {ours['agent']:.3g}")
    bench.report.add(name, "mib_each", ours["used"], "MiB", n, note)


def node_open(bench, name):
    samples = bench.run("open", "run", "--n", max(10, bench.options.n // 4))["dsec"]
    total = samples["load_open"]
    note = f", load {percentile(samples['load'], 50):.3g}, open {percentile(samples['open'], 50):.3g}"
    latency(bench, name, total, {}, [], note)
    if percentile(total, 50) >= OPEN_LIMIT_MS:
        bench.report.fail(name, f"p50 {percentile(total, 50):.3g} ms is not below {OPEN_LIMIT_MS} ms")


BENCHES = {
    "container_cycle": container_cycle,
    "container_create": container_create,
    "exec": exec_true,
    "container_rate": container_rate,
    "container_memory": container_memory,
    "node_open": node_open,
}


def parse():
    repo = os.path.dirname(HERE)
    parser = argparse.ArgumentParser(description="Measures dsec and its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to measure; all without: {' '.join(BENCHES)}")
    parser.add_argument("--n", type=int, help="samples of each contestant (200; a quarter of it of slow ones)")
    parser.add_argument("--live", type=int, help="living sandboxes of container_memory (1000)")
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few seconds, too short for claims")
    parser.add_argument("--build", default=os.path.join(repo, "build"), help="directory of libdsec.so and bench/")
    options = parser.parse_args()
    unknown = [n for n in options.names if n not in BENCHES]
    if unknown:
        parser.error(f"no such benchmark: {' '.join(unknown)} (there are: {' '.join(BENCHES)})")
    options.build = os.path.abspath(options.build)
    options.n = options.n or (12 if options.quick else 200)
    options.live = options.live or (40 if options.quick else 1000)
    if options.n < 1 or options.live < 1:
        parser.error("--n and --live are at least 1")
    return options


def measure(options, report):
    bench = Bench(options, report)
    try:
        bench.prepare()
        for name in options.names or BENCHES:
            print(f"measuring {name} ...", flush=True)
            try:
                BENCHES[name](bench, name)
            except (BenchError, subprocess.SubprocessError, OSError) as e:
                bench.end_child()
                report.fail(name, e)
    except (BenchError, subprocess.SubprocessError, OSError) as e:
        report.fail("prepare", e)
    finally:
        bench.clean()


def interrupted(signo, _frame):
    signal.signal(signo, signal.SIG_IGN)  # the second one would interrupt the cleaning
    print(f"interrupted by signal {signo}: ending what was started", file=sys.stderr)
    raise SystemExit(128 + signo)


def main():
    options = parse()
    for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signo, interrupted)
    report = Report(os.path.join(options.build, "bench.jsonl"), append=bool(options.names))
    load = os.getloadavg()[0]
    print(f"{machine()}; load {load:.1f}")
    if load > 0.5 * os.cpu_count():
        print("the machine is busy: trust no number of this run, and ratios little")
    measure(options, report)
    report.show()
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
