import sys
import unittest
from fractions import Fraction

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


class Calc(Case):
    def table(self, rows):
        for text, want in rows:
            self.expect(f"evaluate({text!r})", solution.evaluate(text), Fraction(want))

    def test_numbers(self):
        self.table([("0", 0), ("007", 7), ("12", 12), ("0.25", "1/4"), ("0.1", "1/10"),
                    (" 3\t", 3), ("((4))", 4), ("123456789012345678901", "123456789012345678901")])

    def test_grouping(self):
        self.table([("1+2*3", 7), ("(1+2)*3", 9), ("10-4-3", 3), ("24/4/2", 3),
                    ("2/3*3", 2), ("1 - 2 + 3", 2), ("7/2", "7/2"), ("8/(4/2)", 4),
                    ("2*(3+4)*5", 70), ("1/3+1/6", "1/2"), ("0.1+0.2", "3/10")])

    def test_signs(self):
        self.table([("-3", -3), ("+3", 3), ("--3", 3), ("-+-3", 3), ("2*-3", -6),
                    ("2--3", 5), ("2 - - - 3", -1), ("-(1+2)", -3), ("6/-4", "-3/2")])

    def test_power(self):
        self.table([("2^10", 1024), ("2^3^2", 512), ("(2^3)^2", 64), ("-2^2", -4),
                    ("(-2)^2", 4), ("2^-1", "1/2"), ("2^-2^2", "1/16"), ("2^--2", 4),
                    ("0^0", 1), ("2*3^2", 18), ("2^2*3", 12), ("-2^-2", "-1/4"),
                    ("0.5^2", "1/4"), ("4^(1/2+1/2)", 4), ("1^1000", 1), ("(1/2)^-3", 8)])

    def test_malformed(self):
        for text in ("", " ", "1+", "+", "*2", "1 2", "(1", "1)", "()", "1..2", ".5", "5.",
                     "1.2.3", "2**3", "2//3", "1,5", "a", "1e3", "2^", "^2", "1+*2",
                     "(1)(2)", "1\n+2", "\u0663", "1_000", "0x10"):
            self.expect_error(f"evaluate({text!r})", ValueError,
                              lambda: solution.evaluate(text))

    def test_exponent(self):
        for text in ("2^0.5", "4^(1/2)", "1^1001", "1^-1001"):
            self.expect_error(f"evaluate({text!r})", ValueError,
                              lambda: solution.evaluate(text))

    def test_zero(self):
        for text in ("1/0", "1/(2-2)", "0^-1", "0/0"):
            self.expect_error(f"evaluate({text!r})", ZeroDivisionError,
                              lambda: solution.evaluate(text))

    def test_nesting(self):
        self.table([("(" * 60 + "1" + ")" * 60, 1), ("-" * 101 + "1", -1),
                    ("+".join(["1"] * 500), 500), ("-".join(["1"] * 500), -498)])


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    if not result.wasSuccessful() or result.skipped or result.testsRun != 8:
        sys.exit(1)
    with open(".passed", "w") as out:
        out.write(f"passed {TOKEN}\n")
    print("all passed")
