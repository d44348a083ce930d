import sys

TOKEN = sys.stdin.readline().strip()  # taken before any tested code runs

import solution

failures = 0


def fail(message):
    global failures
    failures += 1
    print("FAIL", message)
    if failures == 10:
        sys.exit("too many failures, giving up")


def expect(what, got, want):
    if got != want or type(got) is not type(want):
        fail(f"{what}: expected {want!r}, got {got!r}")


def attempt(what, call):
    try:
        return call()
    except Exception as e:
        return f"{type(e).__name__}: {e}"


def expect_error(what, kind, call):
    try:
        got = call()
    except kind:
        return
    except Exception as e:
        got = f"{type(e).__name__}: {e}"
    fail(f"{what}: expected {kind.__name__}, got {got!r}")


def same(name, text, width, want):
    got = attempt(name, lambda: getattr(solution, name)(text, width))
    if got != want:
        fail(f"{name}({text!r}, {width}):\n  expected {want!r}\n  got      {got!r}")


for text, width, want in [
    ("", 10, ""),
    (" \n\t\n ", 10, ""),
    ("hello", 10, "hello"),
    ("one two three", 7, "one two\nthree"),
    ("one two three", 6, "one\ntwo\nthree"),
    ("one two three", 13, "one two three"),
    ("  one \t two\nthree  ", 20, "one two three"),
    ("a b c d", 1, "a\nb\nc\nd"),
    ("a b c d", 3, "a b\nc d"),
    ("first\n\nsecond", 20, "first\n\nsecond"),
    ("first\n \t\nsecond", 20, "first\n\nsecond"),
    ("\n\nfirst\n \t\n\n\nsecond part\n\n", 8, "first\n\nsecond\npart"),
    ("abcdefghij", 4, "abcd\nefgh\nij"),
    ("abcdefgh", 4, "abcd\nefgh"),
    ("x abcdefghij yz k", 5, "x\nabcde\nfghij\nyz k"),
    ("x abcdefg yz k", 5, "x\nabcde\nfg yz\nk"),
    ("ab-cd ef", 5, "ab-cd\nef"),
    ("ab-cde", 4, "ab-c\nde"),
    ("xyz", 1, "x\ny\nz"),
]:
    same("wrap", text, width, want)

for text, width, want in [
    ("", 5, ""),
    ("one two", 10, "one two"),
    ("one two three", 9, "one   two\nthree"),
    ("a b c d eeeeeeee", 10, "a  b  c  d\neeeeeeee"),
    ("a b c d eeeeeeee", 9, "a  b  c d\neeeeeeee"),
    ("aa bb cc dddddddd", 10, "aa  bb  cc\ndddddddd"),
    ("aa bb cc dddddddd", 11, "aa   bb  cc\ndddddddd"),
    ("lonely aaaaaaaa b", 8, "lonely\naaaaaaaa\nb"),
    ("a b cccc\n\nd e ffff", 5, "a   b\ncccc\n\nd   e\nffff"),
    ("x abcdefg y kkk", 5, "x\nabcde\nfg  y\nkkk"),
    ("to be or not to be", 8, "to be or\nnot   to\nbe"),
]:
    same("justify", text, width, want)

for width in (0, -1):
    for name in ("wrap", "justify"):
        expect_error(f"{name}('a', {width})", ValueError,
                     lambda: getattr(solution, name)("a", width))

words = "the quick brown fox jumps over one extraordinarily lazy dog and naps outside".split()
for i in range(300):
    text = " ".join(words[(i * k + k * k) % 13] for k in range(1, 30))
    width = 3 + i % 25
    got = attempt("wrap", lambda: solution.wrap(text, width))
    lines = got.split("\n")
    expect(f"letters of wrap({text!r}, {width})", "".join(got.split()), "".join(text.split()))
    if max(map(len, lines)) > width:
        fail(f"wrap({text!r}, {width}): expected lines of at most {width}, got {got!r}")
    full = attempt("justify", lambda: solution.justify(text, width))
    expect(f"words of justify({text!r}, {width})", full.split(), got.split())
    for line in full.split("\n")[:-1]:
        if " " in line and len(line) != width:
            fail(f"justify({text!r}, {width}): expected length {width}, got {line!r}")

if failures:
    sys.exit(f"{failures} failed")
with open(".passed", "w") as out:
    out.write(f"passed {TOKEN}\n")
print("all passed")
