"""Which instruction sets the kernels of a C library use, by the machine that timed them."""

from dataclasses import replace

import pytest

from tuner.core.problem import Matmul
from tuner.core.processors import AMX_INT8, AVX2, AVX512, AVX_VNNI, PROCESSORS, VNNI
from tuner.library.c.functions import CodeTarget, code_target

F32, I8 = Matmul(8, 8, 8), Matmul(8, 8, 8, "i8")


@pytest.mark.parametrize(
    ("processor", "problem", "needs", "expected"),
    [
        ("haswell", F32, (), CodeTarget("x86-64-v3", "", (AVX2,))),
        ("sapphirerapids", F32, (), CodeTarget("x86-64-v4", "", (AVX512,))),
        ("skylake-avx512", I8, (), CodeTarget("x86-64-v4", "", (AVX512,))),
        ("cascadelake", I8, (), CodeTarget("x86-64-v4", "+avx512vnni", (AVX512, VNNI))),
        (
            "sapphirerapids",
            I8,
            (AMX_INT8,),
            CodeTarget("x86-64-v4", "+avx512vnni,+amx-tile,+amx-int8", (AVX512, VNNI, AMX_INT8)),
        ),
    ],
)
def test_a_kernel_needs_the_vectors_of_its_machine_and_what_it_calls(
    processor: str, problem: object, needs: tuple[str, ...], expected: CodeTarget
) -> None:
    assert isinstance(problem, type(F32))
    assert code_target(problem, PROCESSORS[processor].machine, needs) == expected


def test_dot_products_of_a_processor_without_avx_512_are_those_of_avx_vnni() -> None:
    machine = replace(PROCESSORS["haswell"].machine, has_vnni=True)
    assert code_target(I8, machine, (VNNI,)) == CodeTarget("x86-64-v3", "+avxvnni", (AVX2, AVX_VNNI))


def test_a_processor_without_known_vectors_runs_plain_code() -> None:
    machine = replace(PROCESSORS["haswell"].machine, isa="none")
    assert code_target(F32, machine, ()) == CodeTarget("x86-64", "", ())
