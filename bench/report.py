# SPDX-License-Identifier: MIT
"""Numbers to rows, rows to build/bench.jsonl and to a table on the screen."""

import json
import os
import platform

COLUMNS = ("bench", "metric", "value", "unit", "n", "peer", "peer_value", "ratio", "note")


def percentile(values, p):
    """Linear between the two nearest ranks."""
    s = sorted(values)
    at = (len(s) - 1) * p / 100
    low = int(at)
    high = min(low + 1, len(s) - 1)
    return s[low] + (s[high] - s[low]) * (at - low)


def spread(values):
    return f"p10 {percentile(values, 10):.3g} p90 {percentile(values, 90):.3g}"


def cgroup_kind():
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return "cgroup v2"
    v2 = os.path.exists("/sys/fs/cgroup/unified/cgroup.controllers")
    return "cgroups hybrid" if v2 else "cgroup v1" if os.path.isdir("/sys/fs/cgroup") else "no cgroups"


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        models = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}, {cgroup_kind()}"


class Report:
    """Collects rows; each is written out at once, so that a run that breaks keeps what it has."""

    def __init__(self, path, append):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.path = path
        self.rows = []
        self.skips = []
        self.failures = []
        if not append:
            open(path, "w", encoding="utf-8").close()

    def add(self, bench, metric, value, unit, n, note, peer=None, peer_value=None):
        ratio = value / peer_value if peer_value else None
        row = dict(zip(COLUMNS, (bench, metric, value, unit, n, peer, peer_value, ratio, note)))
        for k in ("value", "peer_value", "ratio"):
            row[k] = None if row[k] is None else float(f"{row[k]:.5g}")
        self.rows.append(row)
        with open(self.path, "a", encoding="utf-8") as f:
            f.write(json.dumps(row) + "\n")

    def skip(self, bench, peer, why):
        self.skips.append(f"{bench}: {peer}: {why}")

    def fail(self, bench, why):
        self.failures.append(f"{bench}: {why}")

    def show(self):
        cells = [[_text(r[c]) for c in COLUMNS[:-1]] for r in self.rows]
        try:
            _rich_table(cells)
        except ImportError:
            _plain_table(cells)
        self._show_notes()
        for s in self.skips:
            print(f"skipped: {s}")
        for f in self.failures:
            print(f"FAILED: {f}")
        print(f"{len(self.rows)} rows, {len(self.skips)} skipped, {len(self.failures)} failed; {self.path}")

    def _show_notes(self):
        """Each once: the first part of a note is about our value, what follows about the peer's."""
        seen = set()
        for row in self.rows:
            for part in (f"{row['bench']}: {row['note'].split('; ')[0]}", *row["note"].split("; ")[1:]):
                if part not in seen:
                    print(f"  {part}" if part.startswith(row["bench"]) else f"    {part}")
                seen.add(part)


def _text(value):
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


RIGHT = ("value", "n", "peer_value", "ratio")


def _plain_table(cells):
    rows = [COLUMNS[:-1], *cells]
    widths = [max(len(c) for c in column) for column in zip(*rows)]
    for row in rows:
        parts = (c.rjust(w) if k in RIGHT else c.ljust(w) for k, c, w in zip(COLUMNS, row, widths))
        print("  ".join(parts).rstrip())


def _rich_table(cells):
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None)
    for name in COLUMNS[:-1]:
        table.add_column(name, justify="right" if name in RIGHT else "left", no_wrap=True)
    for row in cells:
        table.add_row(*row)
    Console().print(table)
