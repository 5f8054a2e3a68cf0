"""Oblivious regression trees: one split per level, drawn at random and the best of a few taken.

Extremely randomized trees (Geurts et al., 2006, https://doi.org/10.1007/s10994-006-6226-1); with one split
per level, as in CatBoost, a tree is a few table look-ups for any number of rows.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.samplers.row_table import Column, Floats, RowTable

TREES = 40
DEPTH = 10  # leaves hold one or two of a few hundred observations
TRIED = 2  # random splits per level, of which the best is taken
SHRINKAGE = 0.1  # observations of mean 0 and variance 1 in every leaf

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Answers = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Forest:
    """A fitted forest of regression trees: the splits of all trees, mean and variance of each leaf."""

    places: Integers  # (trees, levels): the column that is split
    answers: Answers  # (trees, levels, codes): the side of the split; last code: the knob is missing
    mean: Floats  # (trees, leaves)
    variance: Floats  # (trees, leaves): large where a leaf has few observations

    def predict(self, table: RowTable) -> tuple[Floats, Floats]:
        """Returns (mean, standard deviation) of the predicted value of each configuration in the table.

        The deviation combines the spread of the trees and the variance within leaves.
        """
        total = np.zeros(len(table.codes), np.float32)
        squares, within = np.zeros_like(total), np.zeros_like(total)
        for tree, places in enumerate(self.places.tolist()):
            leaf = np.zeros(len(table.codes), np.intp)
            for level, place in enumerate(places):
                leaf = 2 * leaf + self.answers[tree, level].take(table.codes[:, place], mode="wrap")
            says = self.mean[tree].take(leaf)
            total += says
            squares += says * says
            within += self.variance[tree].take(leaf)
        count = np.float32(len(self.places))
        mean = (total / count).astype(np.float32)
        variance = squares / count - mean * mean + within / count
        return mean, np.sqrt(np.maximum(variance, np.float32(1e-6)))


def grow(table: RowTable, values: Array, rng: np.random.Generator) -> Forest:
    """Returns a forest fitted to standardized ``values``, one for each configuration of the table.

    Splits are random, drawn from ``rng``; all trees grow together, level by level.
    """
    depth = DEPTH if table.columns else 0
    trees = np.arange(TREES)
    leaf = np.zeros((TREES, len(values)), np.intp)
    places, answers = [], []
    for level in range(depth):
        asked, said = _questions(table.columns, rng)  # (trees, tried), (trees, tried, codes)
        side = said[trees[:, None, None], np.arange(TRIED)[:, None], table.codes.T[asked]]
        parted = 2 * leaf[:, None] + side
        best = np.argmax(_explained(parted, values, 2 << level), axis=1)
        leaf = parted[trees, best]
        places.append(asked[trees, best])
        answers.append(said[trees, best])
    count, total = _sums(leaf, values, 1 << depth)
    return Forest(
        np.stack(places, axis=1) if depth else np.zeros((TREES, 0), np.intp),
        np.stack(answers, axis=1) if depth else np.zeros((TREES, 0, 1), bool),
        (total / count).astype(np.float32),
        (SHRINKAGE / count).astype(np.float32),
    )


def _questions(columns: tuple[Column, ...], rng: np.random.Generator) -> tuple[Integers, Answers]:
    """Draws splits: columns, and the side of every code: by a threshold for numbers, at random for texts."""
    codes = max(column.levels for column in columns) + 1
    levels = np.array([column.levels for column in columns])
    is_ordinal = np.array([column.is_ordinal for column in columns])
    # position of each code, a missing knob in the middle; the last code is -1 for every knob
    stands = np.stack([np.append(np.arange(codes - 1.0), (column.levels - 1) / 2) for column in columns])
    asked = rng.integers(len(columns), size=(TREES, TRIED))
    threshold = rng.integers(levels[asked] - 1)
    among = rng.random((TREES, TRIED, codes)) < 0.5
    return asked, np.where(is_ordinal[asked][..., None], stands[asked] > threshold[..., None], among)


def _explained(parted: Integers, values: Array, leaves: int) -> Array:
    """Returns how much of the sum of squares the means of the leaves explain."""
    count, total = _sums(parted, values, leaves)
    explained: Array = (total * total / count).sum(axis=-1)
    return explained


def _sums(leaf: Integers, values: Array, leaves: int) -> tuple[Array, Array]:
    """Returns per leaf the number of observations, shrinkage included, and the sum of their values."""
    parts = leaf.reshape(-1, leaf.shape[-1])
    flat = (parts + leaves * np.arange(len(parts))[:, None]).ravel()
    count = np.bincount(flat, minlength=leaves * len(parts)) + SHRINKAGE
    total = np.bincount(flat, np.tile(values, len(parts)), leaves * len(parts))
    shape = (*leaf.shape[:-1], leaves)
    return count.reshape(shape), total.reshape(shape)
