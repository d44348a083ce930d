import re
from fractions import Fraction

TOKEN = re.compile(r"[ \t]*(?:([0-9]+(?:\.[0-9]+)?)|([-+*/^()]))")


def _tokens(text):
    text = text.rstrip(" \t")
    pos, out = 0, []
    while pos < len(text):
        m = TOKEN.match(text, pos)
        if not m:
            raise ValueError(f"unexpected text at {pos}")
        out.append(Fraction(m[1]) if m[1] else m[2])
        pos = m.end()
    return out


class _Parser:
    def __init__(self, tokens):
        self.tokens, self.pos = tokens, 0

    def peek(self):
        return self.tokens[self.pos] if self.pos < len(self.tokens) else None

    def take(self):
        token = self.peek()
        self.pos += 1
        return token

    def sum(self):
        value = self.product()
        while self.peek() in ("+", "-"):
            if self.take() == "+":
                value += self.product()
            else:
                value -= self.product()
        return value

    def product(self):
        value = self.signed()
        while self.peek() in ("*", "/"):
            if self.take() == "*":
                value *= self.signed()
            else:
                value /= self.signed()
        return value

    def signed(self):
        if self.peek() == "-":
            self.take()
            return -self.signed()
        if self.peek() == "+":
            self.take()
            return self.signed()
        return self.power()

    def power(self):
        value = self.atom()
        if self.peek() == "^":
            self.take()
            exponent = self.signed()
            if exponent.denominator != 1 or abs(exponent) > 1000:
                raise ValueError("bad exponent")
            value = value ** int(exponent)
        return value

    def atom(self):
        token = self.take()
        if isinstance(token, Fraction):
            return token
        if token == "(":
            value = self.sum()
            if self.take() != ")":
                raise ValueError("missing )")
            return value
        raise ValueError("operand missing")


def evaluate(text):
    parser = _Parser(_tokens(text))
    value = parser.sum()
    return value
