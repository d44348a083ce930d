import csv
import io


def parse(text):
    try:
        rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        return [row or [""] for row in rows]
    except csv.Error as e:
        raise ValueError(str(e))


def dump(rows):
    out = io.StringIO(newline="")
    for row in rows:
        if not row:
            raise ValueError("a row without fields")
        csv.writer(out).writerow(row)
    return out.getvalue()
