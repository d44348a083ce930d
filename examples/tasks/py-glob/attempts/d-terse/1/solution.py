def match(pattern, text):
    items = _compile(pattern)
    # can[j]: the items so far match the first j characters
    can = [True] + [False] * len(text)
    for item in items:
        if item is None:
            new = [any(can[:j + 1]) for j in range(len(can))]
        else:
            new = [False] + [can[j] and item(text[j]) for j in range(len(text))]
        can = new
    return can[-1]


def _compile(pattern):
    items, i = [], 0
    while i < len(pattern):
        c = pattern[i]
        i += 1
        if c == "*":
            items.append(None)
        elif c == "?":
            items.append(lambda x: True)
        elif c == "[":
            item, i = _set(pattern, i)
            items.append(item)
        elif c == "\\":
            if i == len(pattern):
                raise ValueError("nothing after the backslash")
            items.append(lambda x, c=pattern[i]: x == c)
            i += 1
        else:
            items.append(lambda x, c=c: x == c)
    return items


def _set(pattern, i):
    negate = pattern.startswith("!", i)
    i += negate
    spans, first = [], True
    while True:
        if i >= len(pattern):
            raise ValueError("[ without ]")
        if pattern[i] == "]" and not first:
            break
        lo = hi = pattern[i]
        i += 1
        if pattern.startswith("-", i) and i + 1 < len(pattern) and pattern[i + 1] != "]":
            hi = pattern[i + 1]
            i += 2
        spans.append((lo, hi))
        first = False
    return lambda x: any(lo <= x <= hi for lo, hi in spans) != negate, i + 1
