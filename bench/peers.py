# SPDX-License-Identifier: MIT
"""The programs that dsec is compared with, all on the root file system of dsec's image "host".

The root tree is the one that the library built, used as it is and read-only (a sandbox of ours has a writable top over
it); /usr is the machine's, bound read-only. A peer is used only after a trial has shown that it runs the command inside
that root: one that is missing is skipped with a reason, one that fails its trial fails the run.
"""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass

TOPS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
UNIFIED = "/sys/fs/cgroup/unified"  # where hybrid machines have the version-2 tree
TRIAL = 'test ! -e "$1" && test -d /work && ls -d /usr/bin && touch /usr/x 2>/dev/null; echo "trial $? $$"'


class BenchError(Exception):
    """A measurement could not be made; the text says why."""


class Skip(Exception):
    """A peer cannot take part on this machine; the text says why."""


@dataclass
class Peer:
    name: str
    argv: list[str]
    what: str  # what it does and does not do, for the note
    every: int = 1
    hide: str = "-"

    def option(self):
        return ["--peer", self.name, str(self.every), self.hide, *self.argv, ";"]


def bound_trees():
    """What lies over the root tree: /usr, and on a system that is not merged /bin and its like."""
    return ["/usr"] + [f"/{t}" for t in TOPS if os.path.isdir(f"/{t}") and not os.path.islink(f"/{t}")]


def program(name):
    path = shutil.which(name)
    if not path:
        raise Skip(f"{name} is not installed")
    return path


def version(path):
    out = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.split()
    return next(w for w in out if w[0].isdigit())


def is_hybrid():
    return os.path.exists(f"{UNIFIED}/cgroup.controllers")


def write_bundle(runtime, bundle, root, command, cgroups):
    """A bundle as the runtime's own `spec` command makes it, with our root and command."""
    os.makedirs(bundle)
    subprocess.run([runtime, "spec"], cwd=bundle, check=True, stdin=subprocess.DEVNULL)
    path = os.path.join(bundle, "config.json")
    with open(path, encoding="utf-8") as f:
        config = json.load(f)
    config["process"].update(terminal=False, args=command)
    config["root"] = {"path": root, "readonly": True}
    binds = [{"destination": t, "type": "bind", "source": t, "options": ["rbind", "ro"]} for t in bound_trees()]
    config["mounts"] = [m for m in config["mounts"] if m["type"] != "cgroup"] + binds
    if not cgroups:
        spaces = config["linux"]["namespaces"]
        config["linux"]["namespaces"] = [n for n in spaces if n["type"] != "cgroup"]
        config["linux"].pop("resources", None)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(config, f)


class Peers:
    """Sets peers up below `tmp`, once each, and removes what they leave."""

    def __init__(self, tmp, root, cycle, env):
        self.tmp, self.root, self.cycle, self.env = tmp, root, cycle, env
        self.runtimes = {}  # name: [program, --root, directory]
        self.ready = {}

    def get(self, name):
        """The peer, after its trial. Raises Skip with the reason, the same for every row."""
        if name not in self.ready:
            try:
                self.ready[name] = getattr(self, name)()
            except Skip as skip:
                self.ready[name] = skip
        if isinstance(self.ready[name], Skip):
            raise self.ready[name]
        return self.ready[name]

    def trial(self, make):
        """make(command) gives a Peer; its command must see our root, read-only, and exit with 0."""
        # tmp is a directory of the machine that the root does not have
        peer = make(["/bin/sh", "-c", TRIAL, "sh", self.tmp])
        run = subprocess.run([self.cycle, "check", *peer.option()], capture_output=True, text=True, env=self.env,
                             timeout=60)
        words = run.stdout.split()
        if run.returncode or words[:3] != ["/usr/bin", "trial", "1"] or int(words[3]) > 2:
            raise BenchError(f"{peer.name} failed its trial: exit status {run.returncode}, "
                             f"said {run.stdout.strip()!r} {run.stderr.strip()!r}")
        return make(["/bin/true"])

    def floor(self):
        return Peer("floor", ["/bin/true"], "floor: fork, exec and wait, no isolation")

    def oci(self, name, cgroups, options, what, hide="-"):
        runtime = program(name)
        if os.geteuid() != 0:
            raise Skip(f"{name} is measured as root only")
        state = os.path.join(self.tmp, name)
        self.runtimes[name] = [runtime, "--root", state]

        def make(command):
            bundle = os.path.join(self.tmp, f"{name}-{os.path.basename(command[0])}")
            write_bundle(runtime, bundle, self.root, command, cgroups)
            argv = [*self.runtimes[name], *options, "run", "--bundle", bundle, "bench-%w"]
            return Peer(name, argv, f"{name} {version(runtime)}: {what}", hide=hide)
        return self.trial(make)

    def crun(self):
        return self.oci("crun", False, ["--cgroup-manager=disabled"],
                        "no user namespace, no control groups, root read-only", UNIFIED if is_hybrid() else "-")

    def runc(self):
        return self.oci("runc", True, [], "no user namespace, its control groups, root read-only")

    def bwrap(self):
        path = program("bwrap")
        binds = [w for t in bound_trees() for w in ("--ro-bind", t, t)]

        def make(command):
            argv = [path, "--unshare-all", "--ro-bind", self.root, "/", *binds, "--proc", "/proc", "--dev", "/dev"]
            return Peer("bwrap", argv + command,
                        f"bwrap {version(path)}: all namespaces, no control groups or filter, root read-only")
        return self.trial(make)

    def clean(self):
        """Ends and forgets containers that a broken run left."""
        for runtime in self.runtimes.values():
            ids = subprocess.run([*runtime, "list", "-q"], capture_output=True, text=True).stdout.split()
            for i in ids:
                subprocess.run([*runtime, "delete", "--force", i], capture_output=True)
