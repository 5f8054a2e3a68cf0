"""Which instruction sets the kernels of a C library use, by the machine that timed them."""

from dataclasses import replace

import pytest

from tuner.core.problem import Matmul, Problem
from tuner.core.processors import AMX_INT8, AVX2, AVX512, AVX_VNNI, PROCESSORS, VNNI
from tuner.library.c.functions import CodeTarget, code_target
from tuner.library.c.kernels import with_hidden_symbols

WITH_TILES = "+avx512vnni,+amx-tile,+amx-int8"
F32, I8 = Matmul(8, 8, 8), Matmul(8, 8, 8, "i8")


@pytest.mark.parametrize(
    ("processor", "problem", "needs", "expected"),
    [
        ("haswell", F32, (), CodeTarget("x86-64-v3", "", (AVX2,))),
        ("sapphirerapids", F32, (), CodeTarget("x86-64-v4", "", (AVX512,))),
        ("skylake-avx512", I8, (), CodeTarget("x86-64-v4", "", (AVX512,))),
        ("cascadelake", I8, (), CodeTarget("x86-64-v4", "+avx512vnni", (AVX512, VNNI))),
        ("sapphirerapids", I8, (AMX_INT8,), CodeTarget("x86-64-v4", WITH_TILES, (AVX512, VNNI, AMX_INT8))),
    ],
)
def test_a_kernel_needs_the_vectors_of_its_machine_and_what_it_calls(
    processor: str, problem: Problem, needs: tuple[str, ...], expected: CodeTarget
) -> None:
    assert code_target(problem, PROCESSORS[processor].machine, needs) == expected


def test_dot_products_without_avx_512_are_those_of_avx_vnni_and_unknown_vectors_are_not_used() -> None:
    haswell = PROCESSORS["haswell"].machine
    expected = CodeTarget("x86-64-v3", "+avxvnni", (AVX2, AVX_VNNI))
    assert code_target(I8, replace(haswell, has_vnni=True), (VNNI,)) == expected
    assert code_target(F32, replace(haswell, isa="none"), ()) == CodeTarget("x86-64", "", ())


@pytest.mark.parametrize("code", [b"", b"\x7fELF\x01\x01" + bytes(64), b"\x7fELF\x02\x02" + bytes(64)])
def test_symbols_of_another_file_than_an_object_file_of_64_bits_are_not_hidden(code: bytes) -> None:
    with pytest.raises(ValueError, match="no ELF-64 object file in little-endian order"):
        with_hidden_symbols(code)
