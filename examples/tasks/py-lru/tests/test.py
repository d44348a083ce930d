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


class Cache(Case):
    def test_basics(self):
        c = solution.LRU(2)
        self.expect("len of a new cache", len(c), 0)
        self.expect("get of a missing key", c.get("a"), None)
        self.expect("get with a default", c.get("a", 7), 7)
        self.expect("put a", c.put("a", 1), None)
        self.expect("put b", c.put("b", 2), None)
        self.expect("get a", c.get("a"), 1)
        self.expect("put c", c.put("c", 3), ("b", 2))
        self.expect("keys", c.keys(), ["c", "a"])
        self.expect("len", len(c), 2)
        self.expect("get b after it was dropped", c.get("b", "none"), "none")

    def test_replace(self):
        c = solution.LRU(2)
        c.put("a", 1)
        c.put("b", 2)
        self.expect("replacing a", c.put("a", 9), None)
        self.expect("keys", c.keys(), ["a", "b"])
        self.expect("put c", c.put("c", 3), ("b", 2))
        self.expect("get a", c.get("a"), 9)

    def test_looking_is_no_use(self):
        c = solution.LRU(2)
        c.put("a", 1)
        c.put("b", 2)
        self.expect("'a' in cache", "a" in c, True)
        self.expect("'z' in cache", "z" in c, False)
        c.keys()
        self.expect("put c after looking at a", c.put("c", 3), ("a", 1))

    def test_none(self):
        c = solution.LRU(2)
        c.put("n", None)
        c.put("m", 1)
        self.expect("get of a stored None", c.get("n", "default"), None)
        self.expect("keys", c.keys(), ["n", "m"])

    def test_one(self):
        c = solution.LRU(1)
        c.put(1, "x")
        self.expect("put 2", c.put(2, "y"), (1, "x"))
        self.expect("put 2 again", c.put(2, "z"), None)
        self.expect("keys", c.keys(), [2])

    def test_capacity(self):
        for n in (0, -3):
            self.expect_error(f"LRU({n})", ValueError, lambda: solution.LRU(n))

    def test_resize(self):
        c = solution.LRU(4)
        for k in "abcd":
            c.put(k, k.upper())
        c.get("a")
        self.expect_error("resize(0)", ValueError, lambda: c.resize(0))
        self.expect("keys after resize(0)", c.keys(), ["a", "d", "c", "b"])
        self.expect("resize(4)", c.resize(4), [])
        self.expect("resize(2)", c.resize(2), [("b", "B"), ("c", "C")])
        self.expect("put e", c.put("e", "E"), ("d", "D"))
        self.expect("resize(3)", c.resize(3), [])
        self.expect("put f", c.put("f", "F"), None)
        self.expect("keys", c.keys(), ["f", "e", "a"])

    def test_model(self):
        c, model, seed = solution.LRU(300), [], 1
        for step in range(6000):
            seed = (seed * 1103515245 + 12345) % 2**31
            key, op = seed // 65536 % 500, seed // 7 % 3
            at = next((i for i, p in enumerate(model) if p[0] == key), None)
            if op == 0:
                want = None if at is None else model[at][1]
                if at is not None:
                    model.insert(0, model.pop(at))
                self.expect(f"step {step}: get({key})", c.get(key), want)
            else:
                if at is not None:
                    model.pop(at)
                model.insert(0, (key, step))
                want = model.pop() if len(model) > 300 else None
                self.expect(f"step {step}: put({key})", c.put(key, step), want)
        self.expect("keys at the end", c.keys(), [k for k, v in model])


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    if not result.wasSuccessful() or result.skipped or result.testsRun != 8:
        sys.exit(1)
    with open(".passed", "w") as out:
        out.write(f"passed {TOKEN}\n")
    print("all passed")
