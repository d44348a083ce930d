from datetime import date, timedelta


def read(text):
    return date.fromisoformat(text)


def days_between(a, b):
    return (read(b) - read(a)).days


def add_days(text, n):
    return (read(text) + timedelta(days=n)).isoformat()


def weekday(text):
    return read(text).strftime("%a")
