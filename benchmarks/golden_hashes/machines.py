"""The machines for which code is compiled, as values: independent of the processor or GPU here."""

from dataclasses import replace

from benchmarks.golden_hashes.tuner_names import Compiler, Machine, TargetName, chip_of, gpu_machine

KIB, MIB = 2**10, 2**20
AVX512 = Machine(
    name="Golden (avx512 bf16)",
    processor="Golden processor",
    isa="avx512",
    has_bf16=True,
    has_vnni=True,
    physical_cores=4,
    logical_cores=8,
    l1_bytes=48 * KIB,
    l2_bytes=2 * MIB,
    l3_bytes=64 * MIB,
    memory_bytes=64 * 2**30,
)
AVX2 = replace(
    AVX512,
    name="Golden (avx2)",
    isa="avx2",
    has_bf16=False,
    has_vnni=False,
    l1_bytes=32 * KIB,
    l2_bytes=MIB,
    l3_bytes=16 * MIB,
    memory_bytes=16 * 2**30,
)
NEON = replace(
    AVX2,
    name="Golden (neon dotprod i8mm bf16)",
    isa="neon",
    has_dotprod=True,
    has_i8mm=True,
    has_arm_bf16=True,
)
PROCESSORS = {machine.isa: machine for machine in (AVX512, AVX2, NEON)}
COMPILER = Compiler("LLVM of golden hashes", (("bindings", "1.0"), ("ptxas", "none")), "ab" * 32)


def machine_of(target: TargetName, isa: str) -> Machine:
    """Returns the machine of a target; ``isa`` chooses the processor."""
    if target.kind == "cpu":
        return PROCESSORS[isa]
    return gpu_machine(target.kind, chip_of(target.detail), "Golden GPU")
