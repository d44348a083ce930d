def wrap(text, width):
    return _layout(text, width, False)


def justify(text, width):
    return _layout(text, width, True)


def _layout(text, width, full):
    if width < 1:
        raise ValueError("width must be at least 1")
    blocks = []
    for words in _paragraphs(text):
        rows = _fill(words, width)
        if full:
            rows[:-1] = [_stretch(row, width) for row in rows[:-1]]
        blocks.append("\n".join(" ".join(row) if isinstance(row, list) else row for row in rows))
    return "\n\n".join(blocks)


def _paragraphs(text):
    words, out = [], []
    for line in text.split("\n") + [""]:
        if line.strip():
            words += line.split()
        elif words:
            out.append(words)
            words = []
    return out


def _fill(words, width):
    rows, row, used = [], [], 0
    for word in words:
        if row and used + 1 + len(word) <= width:
            row.append(word)
            used += 1 + len(word)
            continue
        if row:
            rows.append(row)
        while len(word) > width:
            rows.append([word[:width]])
            word = word[width:]
        row, used = [word], len(word)
    rows.append(row)
    return rows


def _stretch(row, width):
    gaps = len(row) - 1
    if gaps == 0:
        return row[0]
    share, extra = divmod(width - sum(map(len, row)), gaps)
    out = row[0]
    for i, word in enumerate(row[1:]):
        out += " " * (share + (i < extra)) + word
    return out
