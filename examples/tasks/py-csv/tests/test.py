import json
import os
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


def read(name):
    with open(os.path.join("cases", name), newline="", encoding="utf-8") as f:
        return f.read()


def parse(text):
    return attempt("parse", lambda: solution.parse(text))


def dump(rows):
    return attempt("dump", lambda: solution.dump(rows))


names = sorted(n[:-4] for n in os.listdir("cases") if n.endswith(".csv"))
assert len(names) == 3
for name in names:
    expect(f"parse of cases/{name}.csv", parse(read(name + ".csv")),
           json.loads(read(name + ".json")))

for text, want in [
    ("", []),
    ("\n", [[""]]),
    ("\r\n\r\n", [[""], [""]]),
    ("a", [["a"]]),
    ("a,b\r\nc,d\r\n", [["a", "b"], ["c", "d"]]),
    ("a,b\nc", [["a", "b"], ["c"]]),
    ("a,", [["a", ""]]),
    (",\n", [["", ""]]),
    (",,x\n", [["", "", "x"]]),
    ('""', [[""]]),
    ('"",""\n', [["", ""]]),
    ('"a,b",c', [["a,b", "c"]]),
    ('"x\ny\r\nz"\n', [["x\ny\r\nz"]]),
    ('"say ""hi"""', [['say "hi"']]),
    ('""""', [['"']]),
    (" a , b ", [[" a ", " b "]]),
    ('"\r"', [["\r"]]),
    ("a\x0bb\u2028c\n", [["a\x0bb\u2028c"]]),
]:
    expect(f"parse({text!r})", parse(text), want)

for text in ('a"b', 'a"b"', '"a', '"a""', '"a"b', '"a" ,b', ' "a"', "a\rb", "a\r", '"a"\rb', '"'):
    expect_error(f"parse({text!r})", ValueError, lambda: solution.parse(text))

for rows, want in [
    ([], ""),
    ([["a", "b"], ["c"]], "a,b\r\nc\r\n"),
    ([[""]], "\r\n"),
    ([["", ""]], ",\r\n"),
    ([["a,b", 'c"d', "e\nf", "g\rh"]], '"a,b","c""d","e\nf","g\rh"\r\n'),
    ([[" x ", "'y'", ";"]], " x ,'y',;\r\n"),
]:
    expect(f"dump({rows!r})", dump(rows), want)
expect_error("dump([['a'], []])", ValueError, lambda: solution.dump([["a"], []]))

pool = ["", "a", ",", '"', "\n", "\r\n", 'x"y', " ", '""', "a,b"]
for i in range(600):
    rows = [[pool[(i * k + j) % 10] for j in range(i % 4 + 1)] for k in range(1, i % 3 + 2)]
    expect(f"parse(dump({rows!r}))", parse(dump(rows)), rows)

if failures:
    sys.exit(f"{failures} failed")
with open(".passed", "w") as out:
    out.write(f"passed {TOKEN}\n")
print("all passed")
