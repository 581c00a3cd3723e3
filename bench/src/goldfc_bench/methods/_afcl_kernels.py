"""The compiled loop of AFCL's server: seeds compete for objects, one after the other, and those nearby cooperate.

As in the learner's kernels, arrays are float64, and there is no randomness and no validation here.
"""

import numpy as np

from goldfc._types import FloatArray
from goldfc.learning.paper._kernels import compiled

# Seeds whose squared distance is within this move together, however near the object is.
TOGETHER = 1e-4


@compiled
def squared_distances(x: FloatArray, seeds: FloatArray, out: FloatArray) -> None:
    """From one point to every seed."""
    for j in range(seeds.shape[0]):
        total = 0.0
        for m in range(x.shape[0]):
            difference = x[m] - seeds[j, m]
            total += difference * difference
        out[j] = total


@compiled
def winner_of(distances: FloatArray, wins: FloatArray) -> int:
    """The seed with the smallest product of past wins and squared distance; of equal ones, the lower number.

    The method divides the wins by their sum, which is the same for all seeds and decides nothing.
    """
    winner = 0
    for j in range(1, distances.shape[0]):
        if wins[j] * distances[j] < wins[winner] * distances[winner]:
            winner = j
    return winner


@compiled
def interact(objects: FloatArray, rate: FloatArray, seeds: FloatArray, wins: FloatArray) -> None:
    """One message's objects in order; changes `seeds` and `wins` in place.

    The winner of an object takes with it every seed that is no farther from the winner than the object is: each goes
    the share `rate`, per feature, of its way to the object.
    """
    to_object = np.empty(seeds.shape[0])
    to_winner = np.empty(seeds.shape[0])
    for i in range(objects.shape[0]):
        squared_distances(objects[i], seeds, to_object)
        winner = winner_of(to_object, wins)
        wins[winner] += 1.0
        squared_distances(seeds[winner], seeds, to_winner)
        reach = max(to_object[winner], TOGETHER)
        for j in range(seeds.shape[0]):
            if to_winner[j] <= reach:
                for m in range(seeds.shape[1]):
                    seeds[j, m] += rate[m] * (objects[i, m] - seeds[j, m])
