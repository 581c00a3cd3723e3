"""The kinds of array that everything here passes around."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
SingleArray = NDArray[np.float32]  # where half the precision is enough
RowLabels = NDArray[np.int32]  # one for every row: half the memory, and enough
