"""A C library: compiled by a C compiler, linked, loaded and run; results compared with float64."""

import ctypes
import re
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.models.library.c.c_programs import (
    BAD_SIZES,
    BARE,
    FALLBACK,
    LARGE,
    NEEDS_CC,
    ODD,
    PROBLEMS,
    TUNED,
    call,
    cc,
    entry_of,
    shared_object,
    write,
)
from tuner.analysis.ratios import Comparable, NotComparable
from tuner.core import instruction_sets
from tuner.core.dtypes import number_type
from tuner.core.errors import TunerError, UsageError
from tuner.core.instruction_sets import X86_64, CodeLevel
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import Problem
from tuner.core.processors import PROCESSORS
from tuner.core.reliability import RELIABLE, unreliable
from tuner.models.library.c.kernels import CodeTarget, code_target, function_of
from tuner.models.library.c.writer import _templates, c_files, with_hidden_symbols
from tuner.models.library.entries import LibraryEntry
from tuner.runtime.cpu.host import describe_machine

pytestmark = [pytest.mark.mlir, NEEDS_CC]
HERE = describe_machine()
HASWELL = PROCESSORS["haswell"].machine
FUNCTIONS = len(PROBLEMS) - 1  # two sizes share one
AVX2, AVX512 = 1, 2
SOURCES = ("tuner_matmul.c", "tuner_kernels.o")
PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)
RUN_PARTS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
C_LIBRARY = {"malloc", "free", "aligned_alloc", "memcpy", "memset", "memmove"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = tuple(entry_of(problem, strategy) for problem, strategy in PROBLEMS)
    return write(c_files(entries), tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def library(folder: Path) -> ctypes.CDLL:
    return shared_object(folder, *SOURCES)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("problem", [problem for problem, _ in PROBLEMS], ids=lambda problem: problem.key)
def test_a_tuned_size_runs_its_kernel_others_a_portable_loop(problem: Problem, library: ctypes.CDLL) -> None:
    function = library[function_of(problem, "tuner").name]
    other = replace(problem, sizes=(5, 131, 67), batch=2 if problem.lead else 1)
    assert (call(function, problem), call(function, other)) == (TUNED, FALLBACK)


EPILOGUES = (
    (Matmul(33, 70, 40, epilogue="bias_gelu"), "matmul_cpu_direct"),
    (Matmul(33, 70, 40, "f64", epilogue="silu"), "matmul_cpu_direct"),
    (Matmul(40, 72, 36, "bf16", epilogue="gelu_tanh", output="bf16"), "matmul_cpu_direct"),
    (Matmul(40, 72, 36, "f16", epilogue="gelu_tanh", output="f16"), "matmul_cpu_direct"),
    (BatchMatmul(3, 32, 48, 40, epilogue="bias_relu_residual"), "matmul_cpu_direct"),
    (Matmul(64, 64, 64, "i8", epilogue="bias_residual"), "matmul_cpu_packed"),
    (Matmul(64, 64, 64, epilogue="scale"), "matmul_cpu_packed"),
    (Matmul(33, 70, 40, epilogue="accumulate"), "matmul_cpu_direct"),
    (BatchMatmul(3, 32, 48, 40, "bf16", epilogue="accumulate", output="bf16"), "matmul_cpu_direct"),
    (Matmul(64, 64, 64, "i8", epilogue="accumulate"), "matmul_cpu_packed"),
)


@pytest.mark.slow
def test_epilogues_of_the_table_are_right_as_kernels_and_as_portable_loops(tmp_path: Path) -> None:
    write(c_files(tuple(entry_of(problem, strategy) for problem, strategy in EPILOGUES)), tmp_path)
    library = shared_object(tmp_path, *SOURCES, options=("-lm",))
    for problem, _ in EPILOGUES:
        function = library[function_of(problem, "tuner").name]
        other = replace(problem, sizes=(5, 131, 67), batch=2 if problem.lead else 1)
        assert (call(function, problem), call(function, other)) == (TUNED, FALLBACK)
    cc(tmp_path, "check.c", *SOURCES, "-o", "check", "-lm")
    done = subprocess.run([tmp_path / "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "WRONG" not in done.stdout


@pytest.mark.slow
def test_the_check_of_functions_has_sums_where_these_curve(tmp_path: Path) -> None:
    problems = (Matmul(40, 72, 36, epilogue="gelu_tanh"), Matmul(40, 72, 36, "bf16", "nn", "silu", "bf16"))
    write(c_files(tuple(entry_of(problem, "matmul_cpu_direct") for problem in problems)), tmp_path)
    check = (tmp_path / "check.c").read_text()
    line = "double sum = sums[j];"
    assert line in check
    reported = check.replace(line, f'{line} fprintf(stderr, "%d\\n", fabs(sum) <= 2);')
    (tmp_path / "check.c").write_text(reported)
    cc(tmp_path, "check.c", *SOURCES, "-o", "check", "-lm")
    done = subprocess.run([tmp_path / "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert np.mean(list(map(int, done.stderr.split()))) > 0.9


HALF_PROGRAM = """{% import "half.c.j2" as f16 %}#include <stdint.h>
#include <string.h>
{{ f16.question() }}
{{ f16.widening("", "float") }}
{{ f16.rounding("", "float") }}
void widen(const uint16_t *from, float *to) { for (int i = 0; i < 65536; i++) to[i] = from_f16(from[i]); }
void narrow(const float *from, uint16_t *to, int n) { for (int i = 0; i < n; i++) to[i] = to_f16(from[i]); }
int has_half(void) { return HAS_HALF; }
"""


@pytest.mark.parametrize("option", ["-mno-f16c", "-mf16c"])
def test_c_converts_every_f16_and_rounds_to_it_as_numpy_does(option: str, tmp_path: Path) -> None:
    (tmp_path / "half.c").write_text(_templates().from_string(HALF_PROGRAM).render())
    library = shared_object(tmp_path, "half.c", options=(option,))
    bits = np.arange(2**16, dtype=np.uint16)
    wide = np.empty(2**16, np.float32)
    library.widen(bits.ctypes, wide.ctypes)
    assert np.array_equal(wide, bits.view(np.float16).astype(np.float32), equal_nan=True)
    assert np.array_equal(np.signbit(wide), bits >> 15 == 1)
    rng = np.random.default_rng(0)
    finite = wide[np.isfinite(wide)].astype(np.float64)
    halves = (finite[1:] + finite[:-1]) / 2  # ties
    exponents = rng.integers(-40, 40, 100_000)
    drawn = np.ldexp(rng.standard_normal(100_000), exponents)
    drawn = np.concatenate([finite, halves, drawn, [65519.99, 65520.0, np.inf, -np.inf, np.nan]])
    numbers = np.ascontiguousarray(drawn, np.float32)
    rounded = np.empty(len(numbers), np.uint16)
    library.narrow(numbers.ctypes, rounded.ctypes, len(numbers))
    with np.errstate(over="ignore"):
        expected = numbers.astype(np.float16)
    assert np.array_equal(rounded.view(np.float16), expected, equal_nan=True)
    assert library.has_half() == 0 or option == "-mf16c"


def test_a_processor_without_the_instructions_runs_the_portable_loop(library: ctypes.CDLL) -> None:
    function = library.tuner_matmul_f32_nn
    has_all = library.tuner_features()
    library.tuner_limit_features(AVX2)  # as on a processor without AVX-512
    try:
        assert library.tuner_features() == has_all & AVX2
        assert call(function, LARGE) == (FALLBACK if HERE.isa == "avx512" else TUNED)
        library.tuner_limit_features(0)
        assert call(function, LARGE) == FALLBACK
    finally:
        library.tuner_limit_features(ctypes.c_uint(-1))
    assert library.tuner_features() == has_all
    assert call(function, LARGE) == TUNED


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, -1, 1), (1, 1, 0), (2**31, 1, 1), (1, 1, 2**40)])
def test_bad_sizes_are_refused_and_nothing_is_touched(sizes: tuple[int, ...], library: ctypes.CDLL) -> None:
    extents = [ctypes.c_int64(size) for size in sizes]
    assert library.tuner_matmul_f32_nn(None, None, None, *extents) == BAD_SIZES
    assert library.tuner_batch_matmul_f32_nn(None, None, None, ctypes.c_int64(1), *extents) == BAD_SIZES
    too_deep = map(ctypes.c_int64, (1, 1, number_type("i8").depth_limit + 1))  # for sums of products of i8
    assert library.tuner_matmul_i8_nn(None, None, None, *too_deep) == BAD_SIZES


@pytest.mark.slow
def test_the_check_says_that_all_is_right_where_neither_python_nor_tuner_is(folder: Path) -> None:
    cc(folder, "check.c", *SOURCES, "-o", "check")
    command = [folder / "check"]
    done = subprocess.run(command, cwd=folder, env=BARE, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert len(lines) == len(PROBLEMS) + 2 * FUNCTIONS  # and each with another size, and without its kernel
    assert all(line.endswith(" ok") for line in lines)
    assert sum(" tuned " in line for line in lines) == len(PROBLEMS)
    assert "arch_prctl" not in (folder / "tuner_matmul.c").read_text()  # no kernel uses tiles


def test_the_check_fails_where_a_kernel_is_wrong(folder: Path, tmp_path: Path) -> None:
    write(c_files((entry_of(LARGE, "matmul_cpu_packed"),)), tmp_path)
    source = (tmp_path / "tuner_matmul.c").read_text()
    offsets = re.sub(r"(\{\{\.of_3 = \w+\}, \{0), 0,", r"\1, 4,", source)  # B from its second number on
    assert offsets != source
    (tmp_path / "tuner_matmul.c").write_text(offsets)
    cc(tmp_path, "check.c", *SOURCES, "-o", "check")
    done = subprocess.run([tmp_path / "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].endswith(" tuned WRONG")


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm (binutils)")
def test_only_libc_is_needed_and_the_header_s_names_are_given(folder: Path, library: ctypes.CDLL) -> None:
    assert _names("--undefined-only", folder / "tuner_kernels.o") - {"_GLOBAL_OFFSET_TABLE_"} <= C_LIBRARY
    of_libc = _names("-D --undefined-only", folder / "library.so")
    assert {name for name in of_libc if "@GLIBC" not in name} <= {
        *("__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable")  # weak, of any object
    }
    given = _names("-D --defined-only", folder / "library.so")
    header = (folder / "tuner_matmul.h").read_text()
    declared = set(re.findall(r"^TUNER_API .*?\b(tuner_\w+)\(", header, re.M))
    assert given == declared
    assert len(declared) == FUNCTIONS + 2  # two for features


def _names(options: str, file: Path) -> set[str]:
    done = subprocess.run(["nm", *options.split(), file], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake")
def test_the_example_of_cmake_builds_and_tests_the_library(folder: Path, tmp_path: Path) -> None:
    for command in (
        ["cmake", "-S", str(folder), "-B", str(tmp_path), "-DCMAKE_BUILD_TYPE=Release"],
        ["cmake", "--build", str(tmp_path)],
        ["ctest", "--test-dir", str(tmp_path), "--no-tests=error"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_the_header_is_c_plus_plus_as_well(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "use.cpp"
    code = "int main() { return tuner_matmul_f32_nn(0, 0, 0, 0, 1, 1) + 1; }"
    program.write_text(f'#include "tuner_matmul.h"\n{code}\n')
    cc(folder, "-c", "tuner_matmul.c", "-o", str(tmp_path / "matmul.o"))
    objects = [tmp_path / "matmul.o", folder / "tuner_kernels.o"]
    subprocess.run(["c++", "-Werror", f"-I{folder}", program, *objects, "-o", tmp_path / "use"], check=True)
    assert subprocess.run([tmp_path / "use"], check=False).returncode == 0


def test_other_systems_have_the_portable_loop_without_the_object_file(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    library = shared_object(tmp_path, "tuner_matmul.c", options=("-U__linux__",))
    assert call(library.tuner_matmul_f32_nn, LARGE) == FALLBACK
    assert library.tuner_features() == 0


def test_a_kernel_of_two_threads_runs_by_the_threads_that_it_is_given(tmp_path: Path) -> None:
    problem = Matmul(64, 96, 64, epilogue="bias_relu")
    entry = entry_of(problem, "matmul_cpu_packed", 2, split="n")
    library = shared_object(write(c_files((entry,)), tmp_path), *SOURCES)
    function = library.tuner_matmul_f32_nn_bias_relu
    assert call(function, problem) == TUNED  # one part after the other
    used: list[int] = []

    def run(_context: int, parts: int, part: int, work: int) -> None:
        def one(number: int) -> None:
            used.append(threading.get_ident())
            both.wait()  # until the other thread is there: they run at the same time
            PART(part)(work, number)

        both = threading.Barrier(parts, timeout=60)
        with ThreadPoolExecutor(parts) as pool:
            [*pool.map(one, range(parts))]

    callback = RUN_PARTS(run)
    library.tuner_use_threads(2, callback, None)
    assert call(function, problem) == TUNED
    assert len(set(used)) == 2
    library.tuner_use_threads(1, None, None)
    assert call(function, problem) == TUNED
    assert len(used) == 2


def test_of_kernels_of_a_size_the_one_with_the_most_threads_allowed_runs(tmp_path: Path) -> None:
    entries = (entry_of(LARGE, "matmul_cpu_packed"), entry_of(LARGE, "matmul_cpu_packed", 2, split="n"))
    library = shared_object(write(c_files(entries), tmp_path), *SOURCES)
    counts: list[int] = []

    def run(_context: int, parts: int, part: int, work: int) -> None:
        counts.append(parts)
        for number in range(parts):
            PART(part)(work, number)

    callback = RUN_PARTS(run)
    assert call(library.tuner_matmul_f32_nn, LARGE) == TUNED
    library.tuner_use_threads(2, callback, None)
    assert call(library.tuner_matmul_f32_nn, LARGE) == TUNED
    assert counts == [2]  # not of the first call, nor twice of the second


@pytest.mark.skipif(HERE.isa != "avx512", reason="needs AVX-512, to have more than the other processor")
def test_a_processor_takes_the_kernel_with_the_most_instruction_sets_that_it_has(tmp_path: Path) -> None:
    faster = replace(entry_of(LARGE, "matmul_cpu_packed", machine=HASWELL), median_s=1e-6)
    entries = (faster, entry_of(LARGE, "matmul_cpu_packed"))
    library = shared_object(write(c_files(entries), tmp_path), *SOURCES)
    listed = (tmp_path / "tuner_matmul.c").read_text()
    (table,) = re.findall(r"kernels_of_tuner_matmul_f32_nn\[\] = \{\n(.*?)\n\};", listed, re.S)
    assert re.findall(r"TUNER_AVX\d+", table) == ["TUNER_AVX512", "TUNER_AVX2"]
    assert call(library.tuner_matmul_f32_nn, LARGE) == TUNED
    library.tuner_limit_features(AVX2)
    assert call(library.tuner_matmul_f32_nn, LARGE) == TUNED  # by the kernel of the other processor


@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump (binutils)")
def test_a_kernel_has_no_instruction_beyond_the_sets_that_are_asked_for(tmp_path: Path) -> None:
    write(c_files((entry_of(LARGE, "matmul_cpu_packed", machine=HASWELL),)), tmp_path)
    command = ["objdump", "-d", "--no-show-raw-insn", str(tmp_path / "tuner_kernels.o")]
    code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "%ymm" in code
    assert "%zmm" not in code
    assert "%k1" not in code


@pytest.mark.skipif(not HERE.has_amx_bf16, reason="needs AMX, and the permission to use it")
def test_a_kernel_with_tiles_asks_for_the_permission_and_runs(tmp_path: Path) -> None:
    write(c_files((entry_of(Matmul(64, 128, 64, "bf16"), "matmul_cpu_amx"),)), tmp_path)
    cc(tmp_path, "check.c", *SOURCES, "-o", "check")
    done = subprocess.run([tmp_path / "check"], env=BARE, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[0] == "tuner_matmul_bf16_nn 1x64x128x64 tuned ok"
    assert done.returncode == 0


@pytest.mark.slow
def test_two_libraries_with_their_prefixes_are_in_one_program(tmp_path: Path) -> None:
    entries = (entry_of(ODD, "matmul_cpu_direct"),)
    for prefix in ("first", "second"):
        write(c_files(entries, prefix), tmp_path)
    names = [f"{prefix}_{file}" for prefix in ("first", "second") for file in ("matmul.c", "kernels.o")]
    library = shared_object(tmp_path, *names)
    assert call(library.first_matmul_f32_nn, ODD) == call(library.second_matmul_f32_nn, ODD) == TUNED


def test_a_prefix_that_begins_no_name_of_c_and_a_script_that_does_not_compile_are_refused() -> None:
    entry: LibraryEntry = replace(entry_of(ODD, "matmul_cpu_direct"), script="module {")
    for prefix in ("", "Tuner", "2nd", "a-b", "x" * 32):
        with pytest.raises(UsageError, match=rf"--prefix: found '{prefix}', allowed a lower-case letter"):
            c_files((entry,), prefix)
    with pytest.raises(TunerError, match=r"trial 7: matmul 33x70x40 f32 nn none: script:1:7: "):
        c_files((entry,))


def test_the_header_says_where_kernels_come_from_in_one_comment(folder: Path, tmp_path: Path) -> None:
    hostile = replace(HERE, name="a */ int x; /* b")
    timed = replace(entry_of(LARGE, "matmul_cpu_packed"), machine=hostile, reliability=RELIABLE)
    compared = Comparable(1 / 1.5, (0.64, 0.68), 0.01)
    entry = replace(timed, baseline="openblas 1", baseline_s=1.5e-4, compared=compared)
    header = next(file for file in c_files((entry,)) if file.name.endswith(".h")).content.decode()
    assert "a * / int x; / * b" in header
    ratio = r"1\.50x \(1\.47 \.\. 1\.56\) openblas 1"
    assert re.search(rf"^ \*   64x128x64, 100 us \(reliable\), {ratio}, avx\w+, trial 7$", header, re.M)
    disturbed = replace(entry, reliability=unreliable("load"), compared=NotComparable("load"))
    header = next(file for file in c_files((disturbed,)) if file.name.endswith(".h")).content.decode()
    assert re.search(r"^ \*   64x128x64, 100 us \(unreliable: load\), avx\w+, trial 7$", header, re.M)
    assert "multiples of 16 bytes" in header


# Which instruction sets kernels use, by the machine that timed them.

WITH_TILES = "+avx512vnni,+amx-tile,+amx-int8"
F32, I8 = Matmul(8, 8, 8), Matmul(8, 8, 8, "i8")


def x86_64(processor: str, features: str, needs: tuple[str, ...]) -> CodeTarget:
    return CodeTarget(CodeLevel(X86_64, processor, features), needs)


def test_a_kernel_needs_the_vectors_of_its_machine_and_what_it_calls() -> None:
    with_vnni, tiles = (instruction_sets.AVX512, instruction_sets.VNNI), (instruction_sets.AMX_INT8,)
    for processor, problem, needs, expected in (
        ("haswell", F32, (), x86_64("x86-64-v3", "", (instruction_sets.AVX2,))),
        ("sapphirerapids", F32, (), x86_64("x86-64-v4", "", (instruction_sets.AVX512,))),
        ("skylake-avx512", I8, (), x86_64("x86-64-v4", "", (instruction_sets.AVX512,))),
        ("cascadelake", I8, (), x86_64("x86-64-v4", "+avx512vnni", with_vnni)),
        ("sapphirerapids", I8, tiles, x86_64("x86-64-v4", WITH_TILES, with_vnni + tiles)),
    ):
        assert code_target(problem, PROCESSORS[processor].machine, needs) == expected


def test_dot_products_without_avx_512_are_those_of_avx_vnni_and_unknown_vectors_are_not_used() -> None:
    expected = x86_64("x86-64-v3", "+avxvnni", (instruction_sets.AVX2, instruction_sets.AVX_VNNI))
    assert code_target(I8, replace(HASWELL, has_vnni=True), (instruction_sets.VNNI,)) == expected
    assert code_target(F32, replace(HASWELL, isa="none"), ()) == x86_64("x86-64", "", ())


@pytest.mark.parametrize("code", [b"", b"\x7fELF\x01\x01" + bytes(64), b"\x7fELF\x02\x02" + bytes(64)])
def test_symbols_of_another_file_than_an_object_file_of_64_bits_are_not_hidden(code: bytes) -> None:
    with pytest.raises(ValueError, match="no ELF-64 object file in little-endian order"):
        with_hidden_symbols(code)
