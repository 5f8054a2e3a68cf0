"""IREE: its compiler with and without data tiling; it has no tuner for CPUs."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from benchmarks.race.peer import Peer, PeerKernel, PeerPlace, PeerResult, RaceMatmul, compiled_once

LIMIT_S = 300.0
MODULE = """func.func @mm(%a: tensor<{m}x{k}x{input}>, %b: tensor<{k}x{n}x{input}>,
    %c: tensor<{m}x{n}x{output}> {{iree.abi.output = 0 : index}}) -> tensor<{m}x{n}x{output}> {{
  %zero = arith.constant {zero} : {output}
  %empty = tensor.empty() : tensor<{m}x{n}x{output}>
  %filled = linalg.fill ins(%zero : {output})
    outs(%empty : tensor<{m}x{n}x{output}>) -> tensor<{m}x{n}x{output}>
  %product = linalg.matmul ins(%a, %b : tensor<{m}x{k}x{input}>, tensor<{k}x{n}x{input}>)
    outs(%filled : tensor<{m}x{n}x{output}>) -> tensor<{m}x{n}x{output}>
  return %product : tensor<{m}x{n}x{output}>
}}
"""
DATA_TILING = "--iree-opt-data-tiling"
PROCESSOR = "--iree-llvmcpu-target-cpu"
FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-opt-level=O3",
)


def entries(
    case: RaceMatmul, _budgets_s: tuple[float, ...], place: PeerPlace, flags: tuple[str, ...] = ()
) -> Iterator[PeerResult]:
    """Yields the compiled module."""
    source = place.folder / "matmul.mlir"
    source.write_text(module_text(case))
    compiled = place.folder / "matmul.vmfb"
    processor = f"{PROCESSOR}={place.processor or 'host'}"
    words = (place.program("iree-compile"), source.name, *FLAGS, processor, *flags, "-o", compiled.name)
    yield compiled_once(words, PeerKernel("iree", str(compiled), "mm"), place, LIMIT_S)


def module_text(case: RaceMatmul) -> str:
    """Returns the matmul as MLIR that writes C into its third argument."""
    zero = "0" if case.output == "i32" else "0.0"
    return MODULE.format(m=case.m, n=case.n, k=case.k, input=case.dtype, output=case.output, zero=zero)


IREE = Peer(
    name="iree",
    title="IREE",
    package="iree-base-compiler",
    requirements=("iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "numpy"),
    dtypes=("f32", "bf16", "i8"),
    settings=f"iree-compile {' '.join(FLAGS)} {PROCESSOR}=host; device local-sync, C by iree.abi.output",
    source="https://iree.dev/guides/deployment-configurations/cpu/",
    entries=entries,
)
IREE_DATA_TILING = replace(
    IREE,
    name="iree-data-tiling",
    title="IREE-data-tiling",
    settings=f"{IREE.settings}; with {DATA_TILING}",
    source="https://iree.dev/reference/optimization-options/",
    entries=partial(entries, flags=(DATA_TILING,)),
)
