def spiral(matrix):
    rest = [tuple(row) for row in matrix]
    if len(set(map(len, rest))) > 1:
        raise ValueError("ragged")
    out = []
    while rest:
        out += rest.pop(0)
        rest = list(zip(*rest))[::-1]
    return out


def unspiral(values, rows, cols):
    values = list(values)
    if min(rows, cols) < 0 or len(values) != rows * cols:
        raise ValueError("count")
    places = spiral([[(r, c) for c in range(cols)] for r in range(rows)])
    cells = dict(zip(places, values))
    return [[cells[r, c] for c in range(cols)] for r in range(rows)]
