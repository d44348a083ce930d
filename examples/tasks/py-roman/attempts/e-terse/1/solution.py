import re

DIGITS = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
STEPS = [("I", "V", "X"), ("X", "L", "C"), ("C", "D", "M"), ("M", "?", "?")]
SHAPE = re.compile(
    "(?=.)M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})",
    re.IGNORECASE | re.ASCII,
)
VALUE = dict(I=1, V=5, X=10, L=50, C=100, D=500, M=1000)


def to_roman(n):
    if isinstance(n, bool) or not isinstance(n, int):
        raise TypeError(n)
    if n < 1 or n > 3999:
        raise ValueError(n)
    out = ""
    for digit, (one, five, ten) in zip(reversed(str(n)), STEPS):
        swap = str.maketrans("IVX", one + five + ten)
        out = DIGITS[int(digit)].translate(swap) + out
    return out


def from_roman(s):
    if not SHAPE.fullmatch(s):
        raise ValueError(s)
    values = [VALUE[c] for c in s.upper()]
    return sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))
