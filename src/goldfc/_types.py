"""The kinds of array that everything here passes around."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
# One for every row: half the memory, and enough.
RowLabels = NDArray[np.int32]
