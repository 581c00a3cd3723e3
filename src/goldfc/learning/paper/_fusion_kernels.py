"""The compiled part of the fusion: matching of encoded rows.

As in `_kernels`: float64 and int64, no randomness, no validation, operations in their written order.
"""

from goldfc._types import FloatArray, IntArray
from goldfc.learning.paper._kernels import compiled


@compiled
def best_matches(codes: IntArray, modes: IntArray, weights: FloatArray, labels: IntArray) -> int:
    """Eqs. (24), (25). Each encoded row joins the cluster whose mode it matches with the largest total weight.

    Of equal matches the lower number wins. The answer is how many labels changed.

    Note: the paper prints the 2-norm of the matched weights; the sum is what Eq. (24)'s source, weighted k-modes, uses.
    """
    changed = 0
    for i in range(codes.shape[0]):
        best, best_match = 0, -1.0
        for j in range(modes.shape[0]):
            match = 0.0
            for level in range(codes.shape[1]):
                if codes[i, level] == modes[j, level]:
                    match += weights[j, level]
            if match > best_match:
                best, best_match = j, match
        if labels[i] != best:
            labels[i] = best
            changed += 1
    return changed
