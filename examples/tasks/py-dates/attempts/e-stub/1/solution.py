def days_between(a, b):
    raise NotImplementedError


def add_days(date, n):
    raise NotImplementedError


def weekday(date):
    raise NotImplementedError
