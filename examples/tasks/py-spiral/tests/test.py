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


class Spiral(Case):
    def test_table(self):
        for matrix, want in [
            ([], []),
            ([[]], []),
            ([[], []], []),
            ([[7]], [7]),
            ([[1, 2, 3]], [1, 2, 3]),
            ([[1], [2], [3]], [1, 2, 3]),
            ([[1, 2], [4, 3]], [1, 2, 3, 4]),
            ([[1, 2, 3], [4, 5, 6]], [1, 2, 3, 6, 5, 4]),
            ([[1, 2], [3, 4], [5, 6]], [1, 2, 4, 6, 5, 3]),
            ([[1, 2, 3], [8, 9, 4], [7, 6, 5]], list(range(1, 10))),
            ([(1, 2, 3, 4), (10, 11, 12, 5), (9, 8, 7, 6)], list(range(1, 13))),
            ([[1, 2, 3], [10, 11, 4], [9, 12, 5], [8, 7, 6]], list(range(1, 13))),
            ([["a", None], [None, "b"]], ["a", None, "b", None]),
        ]:
            self.expect(f"spiral({matrix})", solution.spiral(matrix), want)

    def test_ragged(self):
        for matrix in ([[1, 2], [3]], [[1], [2, 3]], [[], [1]], [[1], []]):
            self.expect_error(f"spiral({matrix})", ValueError,
                              lambda: solution.spiral(matrix))

    def test_unspiral(self):
        for values, rows, cols, want in [
            ([], 0, 0, []), ([], 0, 5, []), ([], 3, 0, [[], [], []]),
            ([1, 2, 3], 1, 3, [[1, 2, 3]]), ([1, 2, 3], 3, 1, [[1], [2], [3]]),
            (range(1, 7), 2, 3, [[1, 2, 3], [6, 5, 4]]),
            (range(1, 10), 3, 3, [[1, 2, 3], [8, 9, 4], [7, 6, 5]]),
        ]:
            self.expect(f"unspiral({values}, {rows}, {cols})",
                        solution.unspiral(values, rows, cols), want)

    def test_misfit(self):
        for values, rows, cols in [([1], 0, 0), ([], 1, 1), ([1, 2, 3], 2, 2),
                                   ([1, 2, 3, 4, 5], 2, 2), ([1, 2], -1, -2), ([], -1, 0)]:
            self.expect_error(f"unspiral({values}, {rows}, {cols})", ValueError,
                              lambda: solution.unspiral(values, rows, cols))

    def test_shapes(self):
        for rows in range(9):
            for cols in range(9):
                values = [f"v{i}" for i in range(rows * cols)]
                matrix = solution.unspiral(iter(values), rows, cols)
                self.expect(f"shape of unspiral(..., {rows}, {cols})",
                            [len(row) for row in matrix], [cols] * rows)
                copy = [row[:] for row in matrix]
                self.expect(f"spiral(unspiral(..., {rows}, {cols}))",
                            solution.spiral(matrix), values)
                self.expect("the matrix afterwards", matrix, copy)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    if not result.wasSuccessful() or result.skipped or result.testsRun != 5:
        sys.exit(1)
    with open(".passed", "w") as out:
        out.write(f"passed {TOKEN}\n")
    print("all passed")
