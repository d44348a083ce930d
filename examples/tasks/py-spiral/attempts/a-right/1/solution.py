def _walk(rows, cols):
    top, bottom, left, right = 0, rows - 1, 0, cols - 1
    while top <= bottom and left <= right:
        for c in range(left, right + 1):
            yield top, c
        for r in range(top + 1, bottom + 1):
            yield r, right
        if top < bottom:
            for c in range(right - 1, left - 1, -1):
                yield bottom, c
        if left < right:
            for r in range(bottom - 1, top, -1):
                yield r, left
        top, bottom, left, right = top + 1, bottom - 1, left + 1, right - 1


def spiral(matrix):
    rows = [list(row) for row in matrix]
    cols = len(rows[0]) if rows else 0
    if any(len(row) != cols for row in rows):
        raise ValueError("rows of different length")
    return [rows[r][c] for r, c in _walk(len(rows), cols)]


def unspiral(values, rows, cols):
    values = list(values)
    if rows < 0 or cols < 0 or len(values) != rows * cols:
        raise ValueError("wrong number of values")
    matrix = [[None] * cols for _ in range(rows)]
    for value, (r, c) in zip(values, _walk(rows, cols)):
        matrix[r][c] = value
    return matrix
