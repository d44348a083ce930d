from fractions import Fraction


def evaluate(text):
    return Fraction(eval(text.replace("^", "**")))
