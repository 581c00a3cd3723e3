"""Every equation of the paper has exactly one home, and the page that lists them is up to date."""

from collections import Counter

from tools import equations


def test_every_equation_is_claimed_by_exactly_one_function() -> None:
    counts = Counter(claim.equation for claim in equations.claims())
    assert dict(counts) == dict.fromkeys(range(1, equations.LAST_EQUATION + 1), 1)


def test_the_page_of_equations_is_up_to_date() -> None:
    assert equations.PAGE.read_text(encoding="utf-8") == equations.page()
