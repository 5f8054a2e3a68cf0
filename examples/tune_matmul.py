"""Tunes a matmul, and calls the selected kernel.

python examples/tune_matmul.py
"""

import numpy as np

import tuner

problem = tuner.Matmul(96, 96, 96, dtype="f32")
run = tuner.tune(problem, target="cpu", trials=4)
assert run.best is not None, "no candidate worked: tuner history --status failed"
print(f"strategy {run.best.record.candidate.strategy}")

matmul = tuner.load_best(problem)
rng = np.random.default_rng(0)
a, b = rng.random((96, 96), np.float32), rng.random((96, 96), np.float32)
print("right" if np.allclose(matmul(a, b), a @ b, rtol=1e-4) else "wrong")
