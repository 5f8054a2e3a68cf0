"""Tunes one matmul with TVM's MetaSchedule, or builds its best: run in TVM's environment.

python tvm_matmul.py tune M N K DTYPE PROCESSOR FOLDER TRIALS    until it is killed, TRIALS in each round
python tvm_matmul.py build M N K DTYPE PROCESSOR FOLDER          FOLDER/best.so from the records in FOLDER

PROCESSOR: LLVM's name of the one whose instructions are compiled; an empty one is the one here.
"""

import sys

import tvm  # type: ignore[import-not-found,unused-ignore]
from tvm import te
from tvm.s_tir import meta_schedule  # type: ignore[import-not-found,unused-ignore]
from tvm.target import codegen  # type: ignore[import-not-found,unused-ignore]

ENDLESS = 100_000  # trials
TYPES = {"f32": ("float32", "float32"), "i8": ("int8", "int32")}  # of A and B, and of C
BUILD_LIMIT_S = 120


def main() -> None:
    """Tunes or builds."""
    step, m_text, n_text, k_text, dtype, processor, folder, *trials = sys.argv[1:]
    m, n, k = map(int, (m_text, n_text, k_text))
    target = tvm.target.Target(
        {"kind": "llvm", "mcpu": processor or codegen.llvm_get_system_cpu(), "num-cores": 1}
    )
    module = matmul(m, n, k, *TYPES[dtype])
    if step == "tune":
        meta_schedule.tune_tir(
            module,
            target,
            work_dir=folder,
            max_trials_global=ENDLESS,
            num_trials_per_iter=int(trials[0]),
            num_tuning_cores=1,
            builder=meta_schedule.builder.LocalBuilder(max_workers=1, timeout_sec=BUILD_LIMIT_S),
            seed=1,
        )
        return
    database = meta_schedule.database.JSONDatabase(work_dir=folder)
    schedule = meta_schedule.tir_integration.compile_tir(database, module, target)
    tvm.compile(schedule.mod, target).export_library(f"{folder}/best.so")


def matmul(m: int, n: int, k: int, dtype: str, output: str) -> "tvm.IRModule":
    """Returns a module with C = A B as the function "main"."""
    a = te.placeholder((m, k), name="A", dtype=dtype)
    b = te.placeholder((k, n), name="B", dtype=dtype)
    axis = te.reduce_axis((0, k), name="axis")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(a[i, axis].astype(output) * b[axis, j].astype(output), axis=axis),
        name="C",
    )
    return tvm.IRModule({"main": te.create_prim_func([a, b, c])})


if __name__ == "__main__":
    main()
