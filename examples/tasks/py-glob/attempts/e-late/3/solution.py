def match(pattern, text):
    items = _compile(pattern)
    i = j = 0
    star = mark = -1
    while j < len(text):
        if i < len(items) and items[i] is None:
            star, mark = i, j
            i += 1
        elif i < len(items) and items[i](text[j]):
            i += 1
            j += 1
        elif star >= 0:
            mark += 1
            i, j = star + 1, mark
        else:
            return False
    return all(item is None for item in items[i:])


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
