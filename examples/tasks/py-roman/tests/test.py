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


class Roman(Case):
    def test_table(self):
        for n, text in [(1, "I"), (3, "III"), (4, "IV"), (9, "IX"), (14, "XIV"),
                        (40, "XL"), (49, "XLIX"), (90, "XC"), (400, "CD"),
                        (444, "CDXLIV"), (900, "CM"), (999, "CMXCIX"), (1666, "MDCLXVI"),
                        (1994, "MCMXCIV"), (2024, "MMXXIV"), (3888, "MMMDCCCLXXXVIII"),
                        (3999, "MMMCMXCIX")]:
            self.expect(f"to_roman({n})", solution.to_roman(n), text)
            self.expect(f"from_roman({text!r})", solution.from_roman(text), n)

    def test_round_trip(self):
        seen = set()
        for n in range(1, 4000):
            text = solution.to_roman(n)
            self.assertNotIn(text, seen, f"to_roman({n}): {text!r} came up before")
            seen.add(text)
            self.expect(f"from_roman(to_roman({n}))", solution.from_roman(text), n)

    def test_case(self):
        self.expect("from_roman('mcmxciv')", solution.from_roman("mcmxciv"), 1994)
        self.expect("from_roman('xIv')", solution.from_roman("xIv"), 14)

    def test_range(self):
        for n in (0, -1, 4000, 10**9):
            self.expect_error(f"to_roman({n})", ValueError, lambda: solution.to_roman(n))

    def test_type(self):
        for n in (True, False, 1.0, "5", None):
            self.expect_error(f"to_roman({n!r})", TypeError, lambda: solution.to_roman(n))

    def test_malformed(self):
        for s in ("", "IIII", "IC", "IL", "VX", "VV", "MMMM", "XXXX", "IXI", "IVI",
                  "CMC", "CMCM", "IIX", "LL", "XCX", " IV", "IV ", "I V", "A", "4",
                  "IV\n", "\u0131", "\u2163"):
            self.expect_error(f"from_roman({s!r})", ValueError,
                              lambda: solution.from_roman(s))


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    if not result.wasSuccessful() or result.skipped or result.testsRun != 6:
        sys.exit(1)
    with open(".passed", "w") as out:
        out.write(f"passed {TOKEN}\n")
    print("all passed")
