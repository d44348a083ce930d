import sys
import unittest

TOKEN = sys.stdin.readline().strip()  # taken before any tested code runs

import solution


class Case(unittest.TestCase):
    def expect(self, what, got, want):
        if got != want or type(got) is not type(want):
            self.fail(f"{what}: expected {want!r}, got {got!r}")

    def expect_error(self, what, kind, call):
        try:
            got = call()
        except kind:
            return
        except Exception as e:
            self.fail(f"{what}: expected {kind.__name__}, got {type(e).__name__}: {e}")
        self.fail(f"{what}: expected {kind.__name__}, got {got!r}")


class Order(Case):
    def cycle(self, needs):
        try:
            got = solution.order(needs)
        except solution.CycleError as e:
            c = e.cycle
        else:
            self.fail(f"order({needs}): expected CycleError, got {got!r}")
        ok = (isinstance(c, list) and len(c) >= 2 and c[0] == c[-1]
              and len(set(c)) == len(c) - 1
              and all(b in needs.get(a, ()) for a, b in zip(c, c[1:])))
        self.assertTrue(ok, f"order({needs}): expected a cycle, got {c!r}")

    def test_small(self):
        for needs, want in [
            ({}, []),
            ({"a": []}, ["a"]),
            ({"b": [], "a": []}, ["a", "b"]),
            ({"b": [], "a": ["c"]}, ["b", "c", "a"]),
            ({"a": ["b"], "b": ["c"]}, ["c", "b", "a"]),
            ({"x": ["y", "y"]}, ["y", "x"]),
            ({"x": ("y", "z"), "w": {"x"}}, ["y", "z", "x", "w"]),
            ({"a": ["z"], "b": ["y"], "c": ["z", "y"]}, ["y", "b", "z", "a", "c"]),
            ({"m10": [], "m9": []}, ["m10", "m9"]),
        ]:
            self.expect(f"order({needs})", solution.order(needs), want)

    def test_smallest_available(self):
        needs = {"a": ["m"], "k": [], "m": [], "z": ["a"], "b": ["z"]}
        self.expect(f"order({needs})", solution.order(needs), ["k", "m", "a", "z", "b"])

    def test_cycles(self):
        self.assertTrue(issubclass(solution.CycleError, ValueError),
                        "CycleError: expected a subclass of ValueError")
        for needs in ({"a": ["a"]}, {"a": ["b"], "b": ["a"]},
                      {"a": ["b"], "b": ["c"], "c": ["d"], "d": ["b"], "e": []},
                      {"p": ["q", "x"], "q": ["r"], "r": ["p"], "x": []},
                      {"u": ["v"], "v": ["v", "w"]}):
            self.cycle(needs)

    def test_kept(self):
        needs = {"a": ["b"], "c": ["a", "b"]}
        solution.order(needs)
        self.expect("needs afterwards", needs, {"a": ["b"], "c": ["a", "b"]})

    def test_chain(self):
        names = [f"n{i:05d}" for i in range(1200)]
        needs = {a: [b] for a, b in zip(names, names[1:])}
        got = solution.order(needs)
        if got != names[::-1]:
            self.fail(f"chain: expected {names[:-4:-1]} ..., got {got[:3]} ...")

    def test_random(self):
        seed = 7
        for turn in range(60):
            needs, names = {}, [f"{i * 7 % 20:02d}" for i in range(20)]
            for i, name in enumerate(names):
                seed = (seed * 1103515245 + 12345) % 2**31
                needs[name] = [names[j] for j in range(i) if seed >> (j + 5) & 5 == 5]
            want, left = [], set(names)
            while left:
                name = min(n for n in left if not left & set(needs[n]))
                left.remove(name)
                want.append(name)
            self.expect(f"random graph {turn}", solution.order(needs), want)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    if not result.wasSuccessful() or result.skipped or result.testsRun != 6:
        sys.exit(1)
    with open(".passed", "w") as out:
        out.write(f"passed {TOKEN}\n")
    print("all passed")
