"""The mechanism where there is nothing to see, or more than fits into a message."""

from fractions import Fraction
from types import SimpleNamespace
from typing import cast

import numpy as np

from goldfc.learning.micro_clusters import MOST_FEATURES_FOR_CORRELATIONS
from goldfc.site.private.curator import Curator
from goldfc.site.private.mechanism import RINGS, covariance_near, pairs_of_columns, release_radius
from goldfc.site.private.plan import BANDS
from goldfc.site.private.tell import shape_of

MANY = MOST_FEATURES_FOR_CORRELATIONS + 1


def test_where_noise_hides_all_rows_the_radius_is_that_of_the_ranges() -> None:
    sees_nothing = cast(Curator, SimpleNamespace(release=lambda *_: np.full((RINGS, 1), -3.0)))
    assert release_radius(sees_nothing, np.zeros(4), np.ones(4), Fraction(1)) == 2.0


def test_of_many_columns_each_is_multiplied_with_itself_alone() -> None:
    down, across = pairs_of_columns(MANY)
    np.testing.assert_array_equal(down, across)
    assert len(down) == MANY


def test_of_many_columns_no_variance_is_below_the_least_and_all_are_as_much_as_before() -> None:
    form = np.diag(np.linspace(-0.5, 2.0, MANY))
    near = covariance_near(form, 0.1)
    np.testing.assert_array_equal(near, np.diag(np.diagonal(near)))
    assert np.diagonal(near).min() > 0.0
    np.testing.assert_allclose(np.trace(near), MANY)


def test_without_numbers_there_is_no_shape() -> None:
    assert shape_of(np.eye(2), np.empty(0, dtype=np.int64)) is None


def test_a_plan_says_what_is_hopeless() -> None:
    assert [band.words.split(":")[0] for band in BANDS if not band.low] == ["hopeless"]
