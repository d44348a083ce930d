import re

LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def _leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _length(year, month):
    return LENGTHS[month - 1] + (month == 2 and _leap(year))


def _before(year):
    """Days before the first of January of the year; none before year 1."""
    year -= 1
    return year * 365 + year // 4 - year // 100 + year // 400


def _number(date):
    """Day number; 0001-01-01 is 0."""
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", date):
        raise ValueError(f"not a date: {date!r}")
    year, month, day = map(int, date.split("-"))
    if year < 1 or not 1 <= month <= 12 or not 1 <= day <= _length(year, month):
        raise ValueError(f"no such day: {date}")
    return _before(year) + sum(_length(year, m) for m in range(1, month)) + day - 1


def days_between(a, b):
    return _number(b) - _number(a)


def add_days(date, n):
    number = _number(date) + n
    if not 0 <= number < _before(10000):
        raise ValueError("out of range")
    year = number * 400 // 146097 + 1
    while _before(year) > number:
        year -= 1
    while _before(year + 1) <= number:
        year += 1
    rest, month = number - _before(year), 1
    while rest >= _length(year, month):
        rest -= _length(year, month)
        month += 1
    return f"{year:04}-{month:02}-{rest + 1:02}"


def weekday(date):
    return NAMES[_number(date) % 7]
