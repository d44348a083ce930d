import csv
import io


def parse(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def dump(rows):
    out = io.StringIO(newline="")
    csv.writer(out).writerows(rows)
    return out.getvalue()
