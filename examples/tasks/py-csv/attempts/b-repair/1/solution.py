def parse(text):
    rows = []
    for line in text.splitlines():
        row = []
        for field in line.split(","):
            if field.startswith('"') and field.endswith('"'):
                field = field[1:-1].replace('""', '"')
            row.append(field)
        rows.append(row)
    return rows


def dump(rows):
    return "".join(",".join(map(quote, row)) + "\r\n" for row in rows)


def quote(field):
    if "," in field or '"' in field or "\n" in field:
        return '"' + field.replace('"', '""') + '"'
    return field
