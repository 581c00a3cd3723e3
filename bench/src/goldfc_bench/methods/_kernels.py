"""The compiled functions of the counterparts; the rules are those for the kernels of the learner."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.learning.paper._kernels import compiled

# A row depends on others when its squared distance to their span is below this, relative to its squared length.
DEPENDENT = 1e-10
# By how much a correlation may exceed its bound, relative to the largest at the start.
TOLERANCE = 1e-9


class Expression(NamedTuple):
    """One row as a sum of few others, in the order in which they came into use."""

    partner: IntArray  # (places,) numbers of rows
    sign: FloatArray  # (places,) of the coefficient
    coefficient: FloatArray  # (places,)


@compiled
def sparse_self_expression(rows: FloatArray, gamma: float, most: int) -> tuple[IntArray, FloatArray]:
    """Every row x by few others: the c that minimises |x - sum_j c_j x_j|^2 / 2 + (mu / gamma) |c|_1.

    mu is the largest |x . x_j|. Of every c the `most` largest entries are kept: the answer is the rows that they belong
    to, and the entries; where there are fewer, the rest is 0.
    """
    n_rows, n_features = rows.shape
    partners = np.zeros((n_rows, most), dtype=np.int64)
    coefficients = np.zeros((n_rows, most))
    places = min(n_rows, n_features + 1)  # so many can be independent, and one more until another has gone
    use = Expression(np.zeros(places, dtype=np.int64), np.zeros(places), np.zeros(places))
    columns = rows.T.copy()
    for i in range(n_rows):
        count = lasso(rows, columns, i, gamma, use)
        largest = np.argsort(-np.abs(use.coefficient[:count]))[:most]
        for place in range(len(largest)):
            partners[i, place] = use.partner[largest[place]]
            coefficients[i, place] = use.coefficient[largest[place]]
    return partners, coefficients


@compiled
def lasso(rows: FloatArray, columns: FloatArray, i: int, gamma: float, use: Expression) -> int:
    """Row i by the others; the answer is how many places are in use. `columns` are the rows once more, feature-major.

    An active-set method in the manner of Lawson and Hanson: the row that most exceeds its bound,
    |x_j . residual| <= mu / gamma, comes into use, and then those in use settle. The objective falls with every step,
    so that no set of rows comes twice; the limit is for rows so nearly dependent that rounding is all they gain.
    """
    may_join = np.ones(rows.shape[0], dtype=np.bool_)
    may_join[i] = False
    residual = rows[i].copy()
    penalty, bound, count = 0.0, 0.0, 0
    for step in range(50 * len(use.partner)):
        correlation = _products(columns, residual)
        j = np.argmax(np.where(may_join, np.abs(correlation), 0.0))
        if step == 0:
            mu = abs(correlation[j])
            penalty, bound = mu / gamma, mu / gamma + TOLERANCE * mu
        if abs(correlation[j]) <= bound or not may_join[j]:
            break
        use.partner[count], use.sign[count], use.coefficient[count] = j, np.sign(correlation[j]), 0.0
        may_join[j] = False
        count = _settle(rows, i, penalty, use, count + 1, may_join, residual)
    return count


@compiled
def _products(columns: FloatArray, vector: FloatArray) -> FloatArray:
    """The product of every row with the vector."""
    total = np.zeros(columns.shape[1])
    for m in range(columns.shape[0]):
        value, column = vector[m], columns[m]
        for j in range(len(total)):
            total[j] += value * column[j]
    return total


@compiled
def _settle(
    rows: FloatArray,
    i: int,
    penalty: float,
    use: Expression,
    count: int,
    may_join: NDArray[np.bool_],
    residual: FloatArray,
) -> int:
    """Bring those in use to their best coefficients; who reaches 0 on the way goes out of use.

    A row that would be out again at once, by rounding, may not join any more.
    """
    while count > 0:
        direction, step = _direction(rows, residual, penalty, use, count)
        leaving = -1
        for place in range(count):
            toward_zero = -direction[place] * use.sign[place]
            distance = use.coefficient[place] * use.sign[place]
            if toward_zero > 0.0 and distance <= step * toward_zero:
                leaving, step = place, distance / toward_zero
        if step == np.inf:
            return count - 1
        for place in range(count):
            use.coefficient[place] += step * direction[place]
        if leaving >= 0:
            may_join[use.partner[leaving]] = step > 0.0
            count = _without(use, count, leaving)
        residual[:] = rows[i]
        for place in range(count):
            residual -= use.coefficient[place] * rows[use.partner[place]]
        if leaving < 0:
            break
    return count


@compiled
def _without(use: Expression, count: int, leaving: int) -> int:
    """Take one out of use; the order of the others stays."""
    for place in range(leaving, count - 1):
        use.partner[place] = use.partner[place + 1]
        use.sign[place] = use.sign[place + 1]
        use.coefficient[place] = use.coefficient[place + 1]
    return count - 1


@compiled
def _direction(
    rows: FloatArray, residual: FloatArray, penalty: float, use: Expression, count: int
) -> tuple[FloatArray, float]:
    """Where the coefficients in use have to go while none changes its sign, and how far: 1, or without limit.

    To the minimum: with A for the rows in use, A A' direction = A residual - penalty * sign. When the last row depends
    on the others, so that A A' has no inverse: to a smaller |c|_1 with the same sum, until another one reaches 0.
    """
    low, independent = _cholesky(rows, use, count)
    direction = np.zeros(count)
    size, step = count, 1.0
    if independent:
        for a in range(count):
            gain = _dot(rows[use.partner[a]], residual) - penalty * use.sign[a]
            direction[a] = (gain - _dot(low[a, :a], direction[:a])) / low[a, a]
    else:
        size, step = count - 1, np.inf
        direction[:] = -use.sign[size] * low[size]
        direction[size] = use.sign[size]
    for a in range(size - 1, -1, -1):
        direction[a] = (direction[a] - _dot(low[a + 1 : size, a], direction[a + 1 : size])) / low[a, a]
    return direction, step


@compiled
def _cholesky(rows: FloatArray, use: Expression, count: int) -> tuple[FloatArray, bool]:
    """The lower triangle with low low' = A A', and whether the last row in use is independent of the others."""
    low = np.zeros((count, count))
    independent = True
    for a in range(count):
        row = rows[use.partner[a]]
        for b in range(a):
            low[a, b] = (_dot(row, rows[use.partner[b]]) - _dot(low[a, :b], low[b, :b])) / low[b, b]
        square = _dot(row, row)
        left = square - _dot(low[a, :a], low[a, :a])
        independent = left > DEPENDENT * square
        low[a, a] = np.sqrt(max(left, DEPENDENT * square))
    return low, independent


@compiled
def _dot(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for m in range(len(a)):
        total += a[m] * b[m]
    return total
