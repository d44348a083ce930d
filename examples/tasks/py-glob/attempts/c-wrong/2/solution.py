import fnmatch


def match(pattern, text):
    if pattern.count("[") != pattern.count("]"):
        raise ValueError("[ without ]")
    return fnmatch.fnmatchcase(text, pattern)
