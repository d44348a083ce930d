import textwrap


def wrap(text, width):
    blocks = text.split("\n\n")
    return "\n\n".join(textwrap.fill(" ".join(b.split()), width) for b in blocks)


def justify(text, width):
    blocks = []
    for block in wrap(text, width).split("\n\n"):
        lines = block.split("\n")
        for i, line in enumerate(lines[:-1]):
            while len(line) < width and " " in line:
                line = line.replace(" ", "  ", 1)
            lines[i] = line
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
