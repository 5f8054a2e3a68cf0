"""Copies of arrays on pages of the smallest size, the slowest place that a caller's arrays may have.

numpy asks for large pages for arrays of 4 MiB and more, and gets them or not, from one allocation to the
next. A kernel that reads far apart is up to 1.4 times as fast on them: what is fastest on small pages is a
safe choice.
"""

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def copy_on_small_pages(array: npt.NDArray[Any], offset: int = 0) -> npt.NDArray[Any]:
    """Returns a C-contiguous copy of an array ``offset`` bytes past the begin of a page.

    Where the system cannot promise small pages, they are as it gives them.
    """
    memory = mmap.mmap(-1, offset + array.nbytes)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    copy = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    copy[...] = array
    return copy
