import signal
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


def out_of_time(*args):
    sys.exit("FAIL match: expected an answer in a moment, got none in 1 s of CPU time")


signal.signal(signal.SIGVTALRM, out_of_time)
signal.setitimer(signal.ITIMER_VIRTUAL, 1.0)


def match(pattern, text):
    return attempt("match", lambda: solution.match(pattern, text))


YES = [
    ("", ""), ("abc", "abc"), ("*", ""), ("*", "anything"), ("**", ""), ("a*", "a"),
    ("a*", "abc"), ("*c", "abc"), ("a*c", "ac"), ("a*c", "abcabc"), ("*b*", "abc"),
    ("?", "x"), ("?", "\n"), ("a*b", "a\nb"), ("??*", "ab"), ("*??", "abc"),
    ("[abc]", "b"), ("[a-c]", "c"), ("[!a-c]", "d"), ("[]]", "]"), ("[!]]", "a"),
    ("[]a]", "a"), ("[a-]", "-"), ("[-a]", "-"), ("[!-]", "a"), ("[a-c-]", "-"),
    ("[*]", "*"), ("[?]", "?"), ("[[]", "["), ("[\\]", "\\"), ("[a!]", "!"), ("[!!]", "a"),
    ("\\*", "*"), ("\\[a]", "[a]"), ("\\\\", "\\"), ("\\a", "a"), ("a]", "a]"), ("!a", "!a"),
    ("-", "-"), ("*.py", ".py"), ("*[0-9][0-9].log", "app-2024.log"), ("a.c", "a.c"),
    ("(a|b)+", "(a|b)+"), ("^$", "^$"), ("[a-c][x-z]*", "by"), ("*ab*ab*", "xxabab"),
    ("[^a]", "^"), ("[^a]", "a"), ("*a", "aaaa"), ("\u00e9?", "\u00e9\u00e8"),
]
NO = [
    ("", "a"), ("a", ""), ("abc", "ab"), ("abc", "abcd"), ("a", "A"), ("?", ""), ("?", "ab"),
    ("a*c", "abcd"), ("*b", "abc"), ("[abc]", "d"), ("[abc]", ""), ("[!a-c]", "b"),
    ("[!a]", ""), ("[]]", "a"), ("[!]]", "]"), ("[a-]", "b"), ("[c-a]", "b"), ("[c-a]", "c"),
    ("\\*", "a"), ("\\?", "a"), ("a.c", "abc"), ("a", "a\n"), ("[!!]", "!"), ("[a-c]", "B"),
    ("*ab*ab*", "xxab"), ("??*", "a"), ("[!-]", "-"), ("[]", None), ("[!]", None),
    ("[a", None), ("a[b-", None), ("[[", None), ("x\\", None), ("\\", None), ("\\\\\\", None),
]
for pattern, text in YES:
    expect(f"match({pattern!r}, {text!r})", match(pattern, text), True)
for pattern, text in NO:
    if text is None:
        for text in ("", "zzz"):
            expect_error(f"match({pattern!r}, {text!r})", ValueError,
                         lambda: solution.match(pattern, text))
    else:
        expect(f"match({pattern!r}, {text!r})", match(pattern, text), False)

many = "a*" * 20
expect("match('a*' * 20 + 'b', 'a' * 300)", match(many + "b", "a" * 300), False)
expect("match('a*' * 20 + 'b', 'a' * 300 + 'b')", match(many + "b", "a" * 300 + "b"), True)
expect("match('*a' * 20 + '?', 'ab' * 100)", match("*a" * 20 + "?", "ab" * 100), True)

if failures:
    sys.exit(f"{failures} failed")
with open(".passed", "w") as out:
    out.write(f"passed {TOKEN}\n")
print("all passed")
