"""Compiles two_matmuls.mlir as one program for this processor, and compares it with numpy.

python examples/two_matmuls.py
"""

from pathlib import Path

import numpy as np

import tuner

program = tuner.compile_program(Path(__file__).with_suffix(".mlir"), target="cpu")
rng = np.random.default_rng(0)
shapes = ((64, 128), (128, 64), (64, 96), (96, 64))
a, b, c, d = (rng.random(shape, np.float32) for shape in shapes)
total = program(a, b, c, d)
print(total.shape)
print("right" if np.allclose(total, a @ b + c @ d, rtol=1e-4) else "wrong")
program.close()
