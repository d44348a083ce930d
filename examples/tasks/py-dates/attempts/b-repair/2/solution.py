import re
from datetime import date, timedelta

NAMES = "Mon Tue Wed Thu Fri Sat Sun".split()


def read(text):
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError(text)
    return date.fromisoformat(text)


def days_between(a, b):
    return (read(b) - read(a)).days


def add_days(text, n):
    try:
        return (read(text) + timedelta(days=n)).isoformat()
    except OverflowError:
        raise ValueError("out of range") from None


def weekday(text):
    return NAMES[read(text).weekday()]
