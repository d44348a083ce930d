PAIRS = [
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"),
    (100, "C"), (90, "XC"), (50, "L"),
    (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
]


def to_roman(n):
    if type(n) is not int:
        raise TypeError("an int is needed")
    if not 1 <= n <= 3999:
        raise ValueError("out of range")
    out = []
    for value, text in PAIRS:
        times, n = divmod(n, value)
        out.append(text * times)
    return "".join(out)


def from_roman(s):
    if not s.isascii():
        raise ValueError("not a Roman numeral")
    s = s.upper()
    total = pos = 0
    for value, text in PAIRS:
        while s.startswith(text, pos):
            total += value
            pos += len(text)
    if pos != len(s) or not 1 <= total <= 3999 or to_roman(total) != s:
        raise ValueError("not a Roman numeral")
    return total
