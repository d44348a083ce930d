def spiral(matrix):
    rest = matrix
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
