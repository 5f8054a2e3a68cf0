"""Payloads whose fusions become one kernel: the smallest form of layers of models."""

from tests.texts import text_beside

LAYER_NORM = text_beside(__file__, "LAYER_NORM")

CONVOLUTION = text_beside(__file__, "CONVOLUTION")

ROWS_OF_A_TABLE = text_beside(__file__, "ROWS_OF_A_TABLE")
