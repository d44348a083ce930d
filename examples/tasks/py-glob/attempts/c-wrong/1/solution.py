import re


def match(pattern, text):
    out = ""
    for c in pattern:
        if c == "*":
            out += ".*"
        elif c == "?":
            out += "."
        elif c in "[]!-":
            out += "^" if c == "!" else c
        else:
            out += re.escape(c)
    return re.match(out + "$", text) is not None
