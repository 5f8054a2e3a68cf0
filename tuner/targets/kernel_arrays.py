"""What the evaluation of kernels asks of the arrays that they work on: of a matmul, or of a group."""

from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tuner.core.problem import Problem
from tuner.core.record import Verdict
from tuner.payload.reference import Array

MOST_LIKE_A_RESULT = 100  # a number of each type of an output, i8 and bf16 included


def number_like_a_result(rng: np.random.Generator) -> int:
    """Returns a number to fill outputs with: drawn, so that no kernel can take it out of its result."""
    return int(rng.integers(1, MOST_LIKE_A_RESULT + 1))


class KernelArrays(Protocol):
    """The arrays of a problem at fixed addresses, with the results that a correct kernel writes."""

    @property
    def problem(self) -> Problem:
        """Returns the problem that the arrays are of."""

    @property
    def operands(self) -> tuple[Array, ...]:
        """Returns the arrays that kernels read, then those that they write."""

    def fill(self, rng: np.random.Generator) -> None:
        """Draws new inputs in place, and fills the outputs with NaN (integers: the smallest number)."""

    def flip_signs(self) -> None:
        """Changes the inputs in place to others with a known result, and fills the outputs with ones."""

    def guarded(self, *, at_end: bool) -> AbstractContextManager[None]:
        """Works, within the block, on arrays next to pages that fault: after them (``at_end``) or before."""

    def add_special_numbers(self, rng: np.random.Generator) -> None:
        """Puts NaN and infinity into the inputs; what then is expected of the outputs has them too."""

    def fill_with_extremes(self, rng: np.random.Generator) -> None:
        """Draws inputs of numbers that usual draws do not contain, and overwrites the outputs."""

    def overwrite_output(self, rng: np.random.Generator) -> None:
        """Overwrites the outputs, at random with NaN or a number, which looks like a result."""

    def marks(self, rng: np.random.Generator, calls: int) -> npt.NDArray[np.uint64]:
        """Draws what to change before each call; returns addresses as ``ThreadTeam.watch`` takes them."""

    def evaluate(self) -> Verdict:
        """Compares every element of the outputs. Raises CandidateError(VERIFY) for a wrong one."""

    def compare_some_rows(self, rng: np.random.Generator) -> None:
        """Compares a part of the outputs. Raises CandidateError(VERIFY) for a wrong element."""

    def check_rows(self, rng: np.random.Generator) -> None:
        """Compares the outputs for extreme inputs. Raises CandidateError(VERIFY) for a wrong element."""
