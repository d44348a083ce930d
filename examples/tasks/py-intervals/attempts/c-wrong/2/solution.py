def merge(intervals):
    spans = []
    for lo, hi in intervals:
        if lo > hi:
            raise ValueError(f"{lo} is after {hi}")
        if lo < hi:
            spans.append((lo, hi))
    spans.sort()
    out = []
    for lo, hi in spans:
        if out and lo <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], hi))
        else:
            out.append((lo, hi))
    return out


def subtract(a, b):
    a, b = merge(a), merge(b)
    out = []
    for lo, hi in a:
        for cut_lo, cut_hi in b:
            if cut_hi <= lo or cut_lo >= hi:
                continue
            if lo < cut_lo:
                out.append((lo, cut_lo))
            lo = cut_hi
            break
        if lo < hi:
            out.append((lo, hi))
    return out
