import re


def split(text, width):
    for block in re.split(r"\n(?:[ \t]*\n)+", text):
        rows = [[]]
        for word in block.split():
            if len(" ".join(rows[-1] + [word])) > width:
                rows += [[]]
                while len(word) > width:
                    rows[-1].append(word[:width])
                    rows += [[]]
                    word = word[width:]
            rows[-1].append(word)
        rows = [row for row in rows if row]
        if rows:
            yield rows


def check(width):
    if width < 1:
        raise ValueError(width)


def wrap(text, width):
    check(width)
    return "\n\n".join("\n".join(map(" ".join, rows)) for rows in split(text, width))


def pad(row, width):
    row = [word + " " for word in row[:-1]] + row[-1:]
    i = 0
    while len(row) > 1 and sum(map(len, row)) < width:
        row[i] += " "
        i = (i + 1) % (len(row) - 1)
    return "".join(row)


def justify(text, width):
    check(width)
    blocks = []
    for rows in split(text, width):
        lines = [pad(row, width) for row in rows[:-1]] + [" ".join(rows[-1])]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
