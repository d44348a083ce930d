def match(pattern, text):
    items = _compile(pattern)
    return _try(items, text)


def _try(items, text):
    if not items:
        return not text
    if items[0] is None:
        return any(_try(items[1:], text[k:]) for k in range(len(text) + 1))
    return bool(text) and items[0](text[0]) and _try(items[1:], text[1:])


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
