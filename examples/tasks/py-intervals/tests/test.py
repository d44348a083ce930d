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


def cover(intervals):
    return {n for lo, hi in intervals for n in range(lo, hi)}


def shortest(numbers):
    out = []
    for n in sorted(numbers):
        if out and out[-1][1] == n:
            out[-1] = (out[-1][0], n + 1)
        else:
            out.append((n, n + 1))
    return out


class Intervals(Case):
    def test_merge(self):
        for given, want in [
            ([], []),
            ([(1, 3)], [(1, 3)]),
            ([(5, 5)], []),
            ([(1, 3), (3, 5)], [(1, 5)]),
            ([(1, 3), (4, 5)], [(1, 3), (4, 5)]),
            ([(1, 10), (2, 3), (4, 5)], [(1, 10)]),
            ([(8, 9), (-4, -2), (-3, 0)], [(-4, 0), (8, 9)]),
            ([(1, 2), (1, 2), (1, 2)], [(1, 2)]),
            ([(1, 3), (3, 3), (4, 6)], [(1, 3), (4, 6)]),
            ([[6, 7], [1, 6]], [(1, 7)]),
        ]:
            self.expect(f"merge({given})", solution.merge(given), want)

    def test_iterator(self):
        self.expect("merge of a generator", solution.merge((i, i + 1) for i in (2, 0, 1)),
                    [(0, 3)])

    def test_backwards(self):
        for given in ([(3, 1)], [(0, 9), (5, 4)]):
            self.expect_error(f"merge({given})", ValueError, lambda: solution.merge(given))
        self.expect_error("subtract([(0, 9)], [(5, 4)])", ValueError,
                          lambda: solution.subtract([(0, 9)], [(5, 4)]))

    def test_subtract(self):
        for a, b, want in [
            ([], [(1, 2)], []),
            ([(1, 9)], [], [(1, 9)]),
            ([(1, 9)], [(3, 4)], [(1, 3), (4, 9)]),
            ([(1, 9)], [(0, 1), (9, 12)], [(1, 9)]),
            ([(1, 9)], [(0, 20)], []),
            ([(1, 9)], [(0, 3), (7, 8), (5, 6)], [(3, 5), (6, 7), (8, 9)]),
            ([(1, 4), (6, 9)], [(3, 7)], [(1, 3), (7, 9)]),
            ([(1, 4), (3, 9)], [(9, 9), (5, 5)], [(1, 9)]),
        ]:
            self.expect(f"subtract({a}, {b})", solution.subtract(a, b), want)

    def test_arguments_kept(self):
        a, b = [[4, 6], [1, 5]], [[2, 3], [0, 1]]
        solution.merge(a)
        solution.subtract(a, b)
        self.expect("the arguments afterwards", (a, b),
                    ([[4, 6], [1, 5]], [[2, 3], [0, 1]]))

    def test_random(self):
        seed = 12345
        def draw(n):
            nonlocal seed
            seed = (seed * 1103515245 + 12345) % 2**31
            return seed // 65536 % n
        for _ in range(400):
            a, b = ([(lo, lo + draw(6)) for lo in (draw(25) for _ in range(draw(6)))]
                    for _ in "ab")
            self.expect(f"merge({a})", solution.merge(a), shortest(cover(a)))
            self.expect(f"subtract({a}, {b})", solution.subtract(a, b),
                        shortest(cover(a) - cover(b)))


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    if not result.wasSuccessful() or result.skipped or result.testsRun != 6:
        sys.exit(1)
    with open(".passed", "w") as out:
        out.write(f"passed {TOKEN}\n")
    print("all passed")
