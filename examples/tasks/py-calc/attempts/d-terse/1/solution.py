import re
from fractions import Fraction

RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "^": 4}
SIGN = 3


def evaluate(text):
    tokens = re.findall(r"[0-9]+\.[0-9]+|[0-9]+|[^ \t]", text)
    if "".join(tokens) != re.sub(r"[ \t]", "", text):
        raise ValueError("bad text")
    tokens.append("end")
    value = climb(tokens, 1)
    if tokens != ["end"]:
        raise ValueError(f"unexpected {tokens[0]}")
    return value


def climb(tokens, least):
    head = tokens.pop(0)
    if head in ("+", "-"):
        left = climb(tokens, SIGN)
        left = -left if head == "-" else left
    elif head == "(":
        left = climb(tokens, 1)
        if tokens.pop(0) != ")":
            raise ValueError("unbalanced")
    elif re.fullmatch(r"[0-9.]+", head) and head != ".":
        left = Fraction(head)
    else:
        raise ValueError(f"unexpected {head}")
    while RANK.get(tokens[0], 0) >= least:
        op = tokens.pop(0)
        right = climb(tokens, RANK[op] + (op != "^"))
        if op == "+":
            left += right
        elif op == "-":
            left -= right
        elif op == "*":
            left *= right
        elif op == "/":
            left /= right
        elif right.denominator != 1 or abs(right) > 1000:
            raise ValueError("bad exponent")
        else:
            left **= int(right)
    return left
