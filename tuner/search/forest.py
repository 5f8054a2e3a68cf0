"""Oblivious regression trees: one split per level, drawn at random and the best of a few taken.

Extremely randomized trees (Geurts et al., 2006, https://doi.org/10.1007/s10994-006-6226-1); with one split
per level, as in CatBoost, a tree is a few table look-ups for any number of rows.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.search.configurations import Column, Floats, RowTable

TREES = 40
DEPTH = 10  # leaves hold one or two of a few hundred observations
TRIED = 2  # random splits per level, of which the best is taken
SHRINKAGE = 0.1  # prior observations of mean 0 and variance 1 in every leaf

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Sides = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Forest:
    """A fitted forest of regression trees: the splits of all trees, mean and variance of each leaf."""

    split_columns: Integers  # (trees, levels): the column that is split
    goes_right: Sides  # (trees, levels, codes): side of the split; last code: the knob is absent
    mean: Floats  # (trees, leaves)
    variance: Floats  # (trees, leaves): large where a leaf has few observations

    def predict(self, table: RowTable) -> tuple[Floats, Floats]:
        """Returns (mean, deviation) per configuration; deviation: by the trees' spread, leaves' variance."""
        total = np.zeros(len(table.codes), np.float32)
        squares, within = np.zeros_like(total), np.zeros_like(total)
        for tree, split_columns in enumerate(self.split_columns.tolist()):
            leaf = np.zeros(len(table.codes), np.intp)
            for level, column in enumerate(split_columns):
                # code -1 (the knob is absent) wraps to the last entry
                leaf = 2 * leaf + self.goes_right[tree, level].take(table.codes[:, column], mode="wrap")
            predicted = self.mean[tree].take(leaf)
            total += predicted
            squares += predicted * predicted
            within += self.variance[tree].take(leaf)
        count = np.float32(len(self.split_columns))
        mean = (total / count).astype(np.float32)
        variance = squares / count - mean * mean + within / count
        return mean, np.sqrt(np.maximum(variance, np.float32(1e-6)))


def grow(table: RowTable, values: Array, rng: np.random.Generator) -> Forest:
    """Returns a forest fitted to ``values`` per configuration; all trees grow together, level by level."""
    depth = DEPTH if table.columns else 0
    trees = np.arange(TREES)
    leaf = np.zeros((TREES, len(values)), np.intp)
    split_columns, goes_right = [], []
    for level in range(depth):
        # random splits: the column of each, (trees, tried), and the side of each code, (trees, tried, codes)
        split, sides = _random_splits(table.columns, rng)
        side = sides[trees[:, None, None], np.arange(TRIED)[:, None], table.codes.T[split]]
        child_leaf = 2 * leaf[:, None] + side
        count, total = _sums(child_leaf, values, 2 << level)
        # how much of the sum of squares the means of the leaves explain
        best = np.argmax((total * total / count).sum(axis=-1), axis=1)
        leaf = child_leaf[trees, best]
        split_columns.append(split[trees, best])
        goes_right.append(sides[trees, best])
    count, total = _sums(leaf, values, 1 << depth)
    return Forest(
        np.stack(split_columns, axis=1) if depth else np.zeros((TREES, 0), np.intp),
        np.stack(goes_right, axis=1) if depth else np.zeros((TREES, 0, 1), bool),
        (total / count).astype(np.float32),
        (SHRINKAGE / count).astype(np.float32),
    )


def _random_splits(columns: tuple[Column, ...], rng: np.random.Generator) -> tuple[Integers, Sides]:
    codes = max(column.levels for column in columns) + 1
    levels = np.array([column.levels for column in columns])
    is_ordinal = np.array([column.is_ordinal for column in columns])
    # position of each code, a missing knob in the middle; the last code is -1 for every knob
    position = np.stack([np.append(np.arange(codes - 1.0), (column.levels - 1) / 2) for column in columns])
    column_numbers = rng.integers(len(columns), size=(TREES, TRIED))
    threshold = rng.integers(levels[column_numbers] - 1)
    random_subset = rng.random((TREES, TRIED, codes)) < 0.5
    is_above = position[column_numbers] > threshold[..., None]
    return column_numbers, np.where(is_ordinal[column_numbers][..., None], is_above, random_subset)


def _sums(leaf: Integers, values: Array, leaves: int) -> tuple[Array, Array]:
    parts = leaf.reshape(-1, leaf.shape[-1])
    flat = (parts + leaves * np.arange(len(parts))[:, None]).ravel()
    count = np.bincount(flat, minlength=leaves * len(parts)) + SHRINKAGE
    total = np.bincount(flat, np.tile(values, len(parts)), leaves * len(parts))
    shape = (*leaf.shape[:-1], leaves)
    return count.reshape(shape), total.reshape(shape)
