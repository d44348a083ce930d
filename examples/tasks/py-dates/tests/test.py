import datetime
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


FIRST, LAST = "0001-01-01", "9999-12-31"


class Dates(Case):
    def test_between(self):
        for a, b, want in [
            ("2024-01-01", "2024-01-01", 0), ("2024-02-28", "2024-03-01", 2),
            ("2023-02-28", "2023-03-01", 1), ("1900-02-28", "1900-03-01", 1),
            ("2000-02-28", "2000-03-01", 2), ("2024-03-01", "2024-02-28", -2),
            ("2023-12-31", "2024-01-01", 1), ("1970-01-01", "2000-01-01", 10957),
            (FIRST, LAST, 3652058), ("0004-02-29", "0004-12-31", 306),
        ]:
            self.expect(f"days_between({a}, {b})", solution.days_between(a, b), want)

    def test_add(self):
        for a, n, want in [
            ("2024-01-31", 1, "2024-02-01"), ("2024-02-28", 1, "2024-02-29"),
            ("2023-02-28", 1, "2023-03-01"), ("2024-03-01", -1, "2024-02-29"),
            ("2024-01-01", -1, "2023-12-31"), ("2024-05-05", 0, "2024-05-05"),
            ("1999-12-31", 366, "2000-12-31"), ("0999-12-31", 1, "1000-01-01"),
            (FIRST, 3652058, LAST), (LAST, -3652058, FIRST),
        ]:
            self.expect(f"add_days({a}, {n})", solution.add_days(a, n), want)

    def test_weekday(self):
        for a, want in [(FIRST, "Mon"), ("1970-01-01", "Thu"), ("2000-02-29", "Tue"),
                        ("2024-02-29", "Thu"), ("1900-01-01", "Mon"), (LAST, "Fri")]:
            self.expect(f"weekday({a})", solution.weekday(a), want)

    def test_malformed(self):
        for bad in ("", "2023-02-29", "1900-02-29", "2024-13-01", "2024-00-10", "2024-01-00",
                    "2024-04-31", "2024-1-05", "20240105", "2024-01-5", "02024-01-05",
                    "0000-01-01", "2024/01/05", " 2024-01-05", "2024-01-05\n",
                    "2024-W01-1", "2024-001", "2024-01-05T00", "-024-01-05",
                    "\u0662024-01-05"):
            self.expect_error(f"weekday({bad!r})", ValueError, lambda: solution.weekday(bad))
            self.expect_error(f"add_days({bad!r}, 1)", ValueError,
                              lambda: solution.add_days(bad, 1))
            self.expect_error(f"days_between({bad!r}, 2024-01-01)", ValueError,
                              lambda: solution.days_between(bad, "2024-01-01"))
            self.expect_error(f"days_between(2024-01-01, {bad!r})", ValueError,
                              lambda: solution.days_between("2024-01-01", bad))

    def test_range(self):
        for a, n in [(FIRST, -1), (LAST, 1), ("2024-01-01", 10**9), ("2024-01-01", -10**12)]:
            self.expect_error(f"add_days({a}, {n})", ValueError,
                              lambda: solution.add_days(a, n))

    def test_many(self):
        start = datetime.date(1, 1, 1)
        for n in [i * 577 for i in range(6300)] + list(range(36400, 36700)):
            day = start + datetime.timedelta(n)
            text = day.isoformat()
            self.expect(f"add_days({FIRST}, {n})", solution.add_days(FIRST, n), text)
            self.expect(f"days_between({text}, {FIRST})",
                        solution.days_between(text, FIRST), -n)
            self.expect(f"weekday({text})", solution.weekday(text),
                        "Mon Tue Wed Thu Fri Sat Sun".split()[day.weekday()])


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    if not result.wasSuccessful() or result.skipped or result.testsRun != 6:
        sys.exit(1)
    with open(".passed", "w") as out:
        out.write(f"passed {TOKEN}\n")
    print("all passed")
