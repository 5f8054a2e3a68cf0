"""The product of a quantized matmul in float64, and the error that a kernel may have.

Activations are quantized in f32, operation by operation as the payload says, so that a kernel's integers are
exactly these. What is left is the rounding of sums in f32, and of scales times sums.
"""

import numpy as np
import numpy.typing as npt

from tuner.core.dtypes import number_type, sum_roundings
from tuner.core.quantization import BY_ROW, GREATEST, LEAST_MAXIMUM, WeightFormat
from tuner.mlir.fusions.facts import quantization_in

Array = npt.NDArray[np.generic]
Float64 = npt.NDArray[np.float64]
UNIT = number_type("f32").rounding
SCALINGS = 4  # roundings of an element besides those of its sum: of its scales, and of the group's sum


def quantized_product(text: str, inputs: tuple[Array, ...], output: str) -> tuple[Float64, Float64]:
    """Returns A W^T in float64 and the tolerance of each element, both m x n.

    Args:
        text: a payload of ``tuner.core.quantization.quantized_text``.
        inputs: A (m x k), integers (n x k), scales and, where the format has these, zero points (n x groups).
        output: the element type of the result.
    """
    weights = quantization_in(text)
    a, q, scales, *points = inputs
    with np.errstate(all="ignore"):
        rows = dequantized_rows(a.astype(np.float32), weights)
        columns, sizes = dequantized(q, scales, points[0] if points else None)
        product = rows @ columns.T
        # a kernel may subtract the zero points from sums: partial sums are as large as both together
        allowed = (SCALINGS + sum_roundings(q.shape[1])) * UNIT * (np.abs(rows) @ sizes.T)
        if output != "f32":
            allowed = allowed + number_type(output).rounding * np.abs(product)
        return product, np.nan_to_num(allowed, nan=0.0, posinf=0.0)


def dequantized(q: Array, scales: Array, points: Array | None) -> tuple[Float64, Float64]:
    """Returns (weights, bounds), both (n x k) in float64.

    A bound is the largest magnitude that the steps of computing the weight may reach.

    ``q``: integers (n x k); ``scales``, ``points``: scales and zero points (n x groups of k).
    """
    n, k = q.shape
    groups = scales.shape[1]
    integers = q.reshape(n, groups, k // groups).astype(np.float64)
    shifts = np.zeros((n, groups)) if points is None else points.astype(np.float64)
    wide = scales.astype(np.float64)[..., None]
    values = ((integers - shifts[..., None]) * wide).reshape(n, k)
    sizes = ((np.abs(integers) + np.abs(shifts)[..., None]) * np.abs(wide)).reshape(n, k)
    return values, sizes


def dequantized_rows(a: npt.NDArray[np.float32], weights: WeightFormat) -> Float64:
    """Returns A (m x k) in float64 with the values that a kernel multiplies.

    If ``weights.activations`` says so, each row, or each group of a row, is rounded to integers times a
    scale.
    """
    if not weights.activations:
        return a.astype(np.float64)
    m, k = a.shape
    parts = a.reshape(m, 1 if weights.activations == BY_ROW else weights.groups(k), -1)
    largest = np.abs(parts).max(axis=2, keepdims=True)
    greatest = np.float32(GREATEST)
    inverse = np.where(largest < np.float32(LEAST_MAXIMUM), np.float32(0), greatest / largest)
    integers = np.rint(parts * inverse.astype(np.float32)).astype(np.float64)
    rows: Float64 = (integers * (largest / greatest).astype(np.float64)).reshape(m, k)
    return rows
