"""Packs a B that is no weight to panels of words of K, laid out as a weight that comes packed is."""

from collections.abc import Callable

from tuner.mlir.bindings import Value
from tuner.mlir.ops.blocks.block_extent import BlockExtent
from tuner.mlir.ops.blocks.packing import allocated, pack_b
from tuner.mlir.ops.blocks.weight_words import WeightWords
from tuner.mlir.ops.blocks.words import WordSource
from tuner.mlir.rewrite.building import create, times, total


def packed_words(
    source: WordSource, columns: BlockExtent, k: int, vectors: int, changed: Callable[[Value], Value]
) -> WeightWords:
    """Creates the code that packs B, ``k`` rows of ``columns``, to panels of ``vectors`` vectors.

    ``changed`` creates what is stored in place of a vector of words. Words after the last of K, up to whole
    vectors, are zeros, changed as all others.
    """
    words = -(-k // source.depth) * source.words
    panels = columns.steps(vectors * source.words)
    memory = allocated((panels * words, vectors * source.depth), source.element)
    made = WeightWords(memory, words, vectors * source.words, 0)

    def store(panel: Value, step: Value, word: Value, vector: Value, elements: Value) -> None:
        row = made.row(panel, total(times(step, source.words), word))
        create("vector.store", [], [changed(elements), memory, row, times(vector, source.depth)])

    pack_b(source, columns, k, vectors, store, fetches=True)
    return made
