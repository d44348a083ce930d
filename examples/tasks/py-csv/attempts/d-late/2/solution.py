def parse(text):
    rows, row, pos, end = [], [], 0, len(text)
    while pos < end:
        if text[pos] == '"':
            field, pos = _quoted(text, pos + 1)
        else:
            field, pos = _plain(text, pos)
        row.append(field)
        if pos == end:
            break
        if text[pos] == ",":
            pos += 1
        else:
            pos = _newline(text, pos)
            rows.append(row)
            row = []
    if row:
        rows.append(row)
    return rows


def _plain(text, pos):
    start = pos
    while pos < len(text) and text[pos] not in ",\r\n":
        if text[pos] == '"':
            raise ValueError(f"quote inside a plain field at {pos}")
        pos += 1
    return text[start:pos], pos


def _quoted(text, pos):
    parts = []
    while True:
        close = text.find('"', pos)
        if close < 0:
            raise ValueError("quoted field without end")
        parts.append(text[pos:close])
        if text[close + 1:close + 2] != '"':
            return "".join(parts), close + 1
        parts.append('"')
        pos = close + 2


def _newline(text, pos):
    if text[pos] == "\n":
        return pos + 1
    if text.startswith("\r\n", pos):
        return pos + 2
    raise ValueError(f"unexpected {text[pos]!r} at {pos}")


def dump(rows):
    out = []
    for row in rows:
        if not row:
            raise ValueError("a row without fields")
        out.append(",".join(_field(f) for f in row) + "\r\n")
    return "".join(out)


def _field(field):
    if any(c in field for c in ',"\r\n'):
        return '"' + field.replace('"', '""') + '"'
    return field
