"""Libraries that a CPU problem can be compared with: found, loaded, and chosen by the user.

A ``BaselineLibrary`` says which types a library multiplies and where it is installed; RegisteredLibraries has
all by name. ``chosen_libraries`` reads the user's choice; ``baseline_environment`` and
``limited_environment`` are for the process that runs a library.
"""

import ctypes
import ctypes.util
import re
import site
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, final

from tuner.core.dtypes import CPU_DTYPES, TILE_DTYPES, natural_output
from tuner.core.errors import TunerError, UsageError, unknown_value
from tuner.core.instruction_sets import AMX_INT8, AVX2, AVX512, AVX512_BF16, AVX_VNNI, VNNI
from tuner.core.problem import COLD, Problem
from tuner.core.problem_classes import PackedProblem, TextProblem
from tuner.core.quantization import WeightFormat
from tuner.runtime import extensions
from tuner.runtime.cpu.host import LIMIT_VARIABLE, describe_machine, own_limit
from tuner.runtime.workers.services import Environment, library_environment

MISSING = re.compile(r"^(\S+): cannot open shared object file")  # glibc, of a library that another one needs
OPENBLAS = "openblas"
MKL = "mkl"
BLIS = "blis"
ONEDNN = "onednn"
ONEDNN_TORCH = "onednn-torch"
# of quantized matmuls
ONNXRUNTIME = "onnxruntime"
OPENVINO = "openvino"
BEST = "best"  # the fastest of those that are installed and can compute the problem
DEFAULT = ""  # the choice where the user makes none
MKL_NAMES = ("libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so")
BLIS_NAMES = ("libblis.so.4", "libblis64.so.4", "libblis-mt.so.4", "libblis.so")
ONEDNN_NAMES = ("libdnnl.so.3", "libdnnl.so")
ONNX_GROUPS = (16, 32, 64, 128, 256)  # block_size of MatMulNBits: a power of two
NARROW_DTYPES = tuple(dtype for dtype in CPU_DTYPES if natural_output(dtype) != dtype)


def library_folders() -> tuple[Path, ...]:
    """Returns the folders of shared libraries of wheels and conda: this environment's and the user's."""
    return (Path(sys.prefix) / "lib", Path(site.getuserbase()) / "lib")


def find_shared_library(names: Iterable[str], folders: Iterable[Path] | None = None) -> str | None:
    """Returns the path of the first of ``names`` in ``folders``, else the name by which the loader finds it.

    None where it is not installed. ``folders`` None: ``library_folders()``.
    """
    listed = tuple(names)
    for folder in library_folders() if folders is None else folders:
        for name in listed:
            if (folder / name).exists():
                return str(folder / name)
    stems = dict.fromkeys(name.removeprefix("lib").partition(".so")[0] for name in listed)
    return next(filter(None, map(ctypes.util.find_library, stems)), None)


def find_extension(package: str, pattern: str) -> str | None:
    """Returns the path of the first extension module of a package that matches the glob ``pattern``.

    Does not import it. None if the package is not installed or no file matches.
    """
    spec = find_spec(package)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    for folder in folders:
        for path in sorted(Path(folder).glob(pattern)):
            return str(path)
    return None


def load_library(path: str) -> Any:
    """Returns a shared library, loaded by ctypes.

    Libraries of its folder that it needs are loaded first, as in Intel's wheels. Raises OSError if the loader
    cannot load it.
    """
    tried: set[str] = set()
    while True:
        try:
            return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            missing = MISSING.match(str(error))
            neighbour = Path(path).parent / missing[1] if missing else None
            if neighbour is None or str(neighbour) in tried or not neighbour.exists():
                raise
            tried.add(str(neighbour))
            load_library(str(neighbour))


def imported_openvino() -> Any:
    """Returns the module openvino, without its telemetry: a process that would run while others are timed."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    import openvino

    return openvino


# Formats of quantized weights that libraries have.


class WeightSupport(ABC):
    """The formats of quantized weights that a library can multiply by."""

    @abstractmethod
    def takes(self, problem: Problem, weights: WeightFormat) -> bool:
        """Returns whether the library can multiply by weights of a format, in the problem's types."""


class AbstractQuantizedMatmul(ABC):
    """A library's matmul by quantized weights, which was compared with a reference."""

    name: str  # of the library, with its version and how it multiplies

    @abstractmethod
    def stopwatch(self, times: int) -> float:
        """Multiplies at least ``times`` times; returns the seconds per matmul."""


@final
class MatMulNBits(WeightSupport):
    """ONNX Runtime's MatMulNBits: A in f32, or quantized to i8; groups of ONNX_GROUPS.

    Only for problems that do not name a type of C.
    """

    def takes(self, problem: Problem, weights: WeightFormat) -> bool:
        is_width = bool(weights.activations) or problem.dtype == "f32"
        return is_width and not problem.output and weights.group in ONNX_GROUPS


@final
class OpenVinoWeights(WeightSupport):
    """OpenVINO: all formats of weights, for problems that do not name a type of C."""

    def takes(self, problem: Problem, weights: WeightFormat) -> bool:
        return not problem.output


@dataclass(frozen=True)
class BaselineLibrary:
    """A library that may be a baseline: the types that it multiplies, where it is, how to install it."""

    dtypes: tuple[str, ...]  # of A and B, with the tuner's type of C: f32 for bf16 and f16, i32 for i8
    install: str  # a hint
    recorded: str  # regular expression that begins the names of its stored times: "MKL 2026.2 avx512"
    # "module:function" of (problem, inputs, threads) -> AbstractLibraryMatmul; "": of quantized matmuls only
    matmul: str = ""
    widened: tuple[str, ...] = ()  # types that it multiplies as f32
    outputs: tuple[str, ...] = ("",)  # of ``Problem.output``: types of C; "": that of the sums
    files: tuple[str, ...] = ()  # names of its shared library
    extension: tuple[str, str] | None = None  # package that has it as well, and a glob of its module
    modules: tuple[str, ...] = ()  # Python modules that it is, all of them
    weights: WeightSupport | None = None  # of a library for quantized matmuls
    # "module:function" of (library, problem, threads, rng) -> AbstractQuantizedMatmul, of such a library
    quantized: str = "tuner.models.quantized.quantized_baselines:verified_matmul"
    slow_isas: tuple[str, ...] = ()  # with which types below f32 take its plain loops, or are wrong

    def find(self) -> str | None:
        """Returns the library's path, the loader's name for it, or its Python module; None: not installed."""
        if self.modules:
            return find_module(*self.modules)
        path = find_shared_library(self.files)
        if path is None and self.extension is not None:
            path = find_extension(*self.extension)
        return path

    def multiplies(self, problem: Problem) -> bool:
        """Returns whether the library can multiply a problem's types, if need be converted to f32."""
        problem = compared_problem(problem)
        if isinstance(problem, PackedProblem) and problem.format and self.weights is not None:
            is_cold = problem.cache == COLD  # copies of the weights are read in turn, A and C are not
            return not is_cold and self.weights.takes(problem, problem.format)
        if isinstance(problem, TextProblem):
            return False
        if problem.dtype in self.widened:
            return True  # C in f32, whatever type the problem stores
        return problem.dtype in self.dtypes and problem.output in self.outputs


def compared_problem(problem: Problem) -> Problem:
    """Returns the problem that a library is timed on; most problems are returned unchanged.

    For a constant B it is the matmul that takes B at each call; for f32 that is computed by products of
    another type (bf16x6), it is the matmul of f32.
    """
    if isinstance(problem, PackedProblem) and problem.format is None:
        problem = problem.unpacked
    if problem.dtype in TILE_DTYPES:
        return replace(problem, dtype=problem.stored_dtype)
    return problem


def find_module(*names: str) -> str | None:
    """Returns the first name if all of these Python modules are installed, else None; imports none."""
    if all(find_spec(name) is not None for name in names):
        return names[0]
    return None


BUILT_IN: Final[Mapping[str, BaselineLibrary]] = {
    OPENBLAS: BaselineLibrary(
        ("f32", "f64"),
        "pip install numpy",
        recorded="openblas ",
        matmul="tuner.targets.cpu.blas:openblas_matmul",
        widened=NARROW_DTYPES,
        modules=("numpy",),
    ),
    MKL: BaselineLibrary(
        ("f32", "f64", "bf16"),
        "pip install mkl",
        recorded="MKL ",
        matmul="tuner.targets.cpu.blas:mkl_matmul",
        files=MKL_NAMES,
    ),
    BLIS: BaselineLibrary(
        ("f32", "f64"),
        "install libblis4 of your system, or: pip install blis",
        recorded="BLIS ",
        matmul="tuner.targets.cpu.blas:blis_matmul",
        files=BLIS_NAMES,
        extension=("blis", "cy*.so"),
    ),
    ONEDNN: BaselineLibrary(
        ("f32", "bf16", "f16", "i8"),
        "pip install onednn",
        recorded="oneDNN (?!.* torch )",
        matmul="tuner.targets.cpu.onednn:onednn_matmul",
        outputs=("", "bf16", "f16"),
        slow_isas=(AVX2,),
        files=ONEDNN_NAMES,
    ),
    ONEDNN_TORCH: BaselineLibrary(
        ("bf16", "f16", "i8"),
        "pip install torch",
        recorded="torch |oneDNN .* torch ",
        matmul="tuner.targets.cpu.torch_onednn:TorchOneDnnMatmul",
        outputs=("", "bf16", "f16"),
        slow_isas=(AVX2,),
        modules=("torch",),
    ),
    ONNXRUNTIME: BaselineLibrary(
        (),
        "pip install onnxruntime onnx",
        recorded="onnxruntime ",
        modules=("onnxruntime", "onnx"),
        weights=MatMulNBits(),
    ),
    OPENVINO: BaselineLibrary(
        (), "pip install openvino", recorded="OpenVINO ", modules=("openvino",), weights=OpenVinoWeights()
    ),
}


@final
class RegisteredLibraries(Mapping[str, BaselineLibrary]):
    """The libraries by name: built-in ones, then those of other distributions, imported at first use."""

    def __getitem__(self, name: str) -> BaselineLibrary:
        if name in BUILT_IN:
            return BUILT_IN[name]
        extension = self._added()[name]
        library = extension.load()
        if not isinstance(library, BaselineLibrary):
            found = f"found {type(library).__name__}, allowed a BaselineLibrary"
            raise TunerError(f"{extension.distribution}: baseline {name!r}: {found}", extension.defect_hint)
        return library

    def __iter__(self) -> Iterator[str]:
        yield from BUILT_IN
        yield from self._added()

    def __len__(self) -> int:
        return len(BUILT_IN) + len(self._added())

    def extension(self, name: str) -> extensions.Extension | None:
        """Returns the extension that adds the library ``name``; None: it is built in."""
        if name in BUILT_IN:
            return None
        return self._added()[name]

    def _added(self) -> Mapping[str, extensions.Extension]:
        return extensions.extensions("baselines", (BEST, *BUILT_IN))


LIBRARIES: Final = RegisteredLibraries()
# What holds libraries to the instructions of a lesser processor: variables of OpenBLAS, MKL, BLIS and
# PyTorch, by isa; of oneDNN by the greatest instruction set.
# https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html
HELD: dict[str, Environment] = {
    AVX512: (
        ("OPENBLAS_CORETYPE", "SkylakeX"),
        ("MKL_ENABLE_INSTRUCTIONS", "AVX512"),
        ("BLIS_ARCH_TYPE", "skx"),
        ("ATEN_CPU_CAPABILITY", "avx512"),
    ),
    AVX2: (
        ("OPENBLAS_CORETYPE", "Haswell"),
        ("MKL_ENABLE_INSTRUCTIONS", "AVX2"),
        ("BLIS_ARCH_TYPE", "haswell"),
        ("ATEN_CPU_CAPABILITY", "avx2"),
    ),
}
ONEDNN_LEVELS = {
    name: (("ONEDNN_MAX_CPU_ISA", level), ("DNNL_MAX_CPU_ISA", level))
    for name, level in (
        (AMX_INT8, "AVX512_CORE_AMX"),
        (AVX512_BF16, "AVX512_CORE_BF16"),
        (VNNI, "AVX512_CORE_VNNI"),
        (AVX512, "AVX512_CORE"),
        (AVX_VNNI, "AVX2_VNNI"),
        (AVX2, "AVX2"),
    )
}


def chosen_libraries(choice: str, problem: Problem, limit: str = "") -> tuple[str, ...]:
    """Returns the libraries (keys of LIBRARIES) that a user's choice means for a problem.

    BEST: all that are installed and can compute the problem in its type; also the default if there are none,
    or if some are slow on the processor. DEFAULT: one library. For quantized weights, both choices mean all
    that are installed and can multiply by these weights, () if there are none; for other fusions (). ONEDNN:
    oneDNN's wheel, else the oneDNN in PyTorch. ``limit``: processor of the run, as for ``own_limit``. Raises
    UsageError for a named library that is unknown, cannot multiply the problem, or is not installed.
    """
    problem = compared_problem(problem)
    if choice in (BEST, DEFAULT) and isinstance(problem, TextProblem):
        return tuple(name for name in LIBRARIES if _is_able(name, problem))
    if choice == DEFAULT:
        return (_default_library(problem, limit),)
    if choice == BEST:
        able = tuple(name for name in LIBRARIES if _is_able(name, problem))
        isa = describe_machine(limit).isa
        if able and not any(isa in LIBRARIES[name].slow_isas for name in able):
            return able
        return tuple(dict.fromkeys((*able, _default_library(problem, limit))))
    if choice not in LIBRARIES:
        raise unknown_value("baseline", choice, (BEST, *LIBRARIES))
    able = tuple(name for name, library in LIBRARIES.items() if library.multiplies(problem))
    if choice not in able:
        into = f" into {problem.output}" if problem.output else ""
        hint = f"--baseline {BEST}, or one of {', '.join(able)}" if able else ""
        raise UsageError(f"baseline {choice}: cannot multiply {problem.types}{into}", hint)
    names = (ONEDNN, ONEDNN_TORCH) if choice == ONEDNN else (choice,)
    installed = next((name for name in names if _is_able(name, problem, widens=True)), None)
    if installed is None:
        raise UsageError(f"baseline {choice}: not installed", LIBRARIES[choice].install)
    return (installed,)


def recorded_library(name: str, problem: Problem) -> str:
    """Returns the library (key of LIBRARIES) of a recorded name: "mkl" for "MKL 2026.2 avx512".

    DEFAULT where the library is unknown, not installed or not able to multiply the problem.
    """
    problem = compared_problem(problem)
    for library, row in LIBRARIES.items():
        if re.match(row.recorded, name) and _is_able(library, problem, widens=True):
            return library
    return DEFAULT


def limited_environment(threads: int, limit: str = "") -> Environment:
    """Returns environment changes for a process whose BLAS uses ``threads`` threads, limited to a processor.

    ``limit``: name of the processor, as for ``own_limit``; libraries use only its instruction sets.
    """
    environment = library_environment(threads)
    processor = own_limit(limit)
    if processor is None:
        return environment
    onednn = next(level for name, level in ONEDNN_LEVELS.items() if name in processor.all_sets)
    return (*environment, (LIMIT_VARIABLE, processor.name), *HELD[processor.isa], *onednn)


def baseline_environment(library: str, threads: int, limit: str = "") -> Environment:
    """Returns environment variables (name, value) for a process whose library uses ``threads`` threads.

    A value of None unsets the variable. ``limit``: name of a lesser processor, as for ``own_limit``;
    libraries use only its instruction sets.
    """
    environment = limited_environment(threads, limit)
    # oneDNN's wheel runs by SYCL, whose OpenCL loader finds Intel's runtime for CPUs by this variable
    runtimes = [folder / "libintelocl.so" for folder in library_folders() if library == ONEDNN]
    runtime = next((path for path in runtimes if path.exists()), None)
    if runtime is None:
        return environment
    return (*environment, ("OCL_ICD_FILENAMES", str(runtime)))


def widened_note(choice: str, problem: Problem, limit: str = "") -> str:
    """Returns a sentence for the user if the default baseline multiplies the problem as f32; "" if not.

    ``choice``: of the user; there is no sentence for a library that the user names. ``limit``: as of
    ``chosen_libraries``.
    """
    problem = compared_problem(problem)
    if choice not in (DEFAULT, BEST) or isinstance(problem, TextProblem):
        return ""
    (first, *_) = chosen_libraries(choice, problem, limit)
    if problem.dtype not in LIBRARIES[first].widened:
        return ""
    torch = LIBRARIES[ONEDNN_TORCH]
    if describe_machine(limit).isa in torch.slow_isas:
        return f"no library multiplies {problem.dtype} well on this processor: the baseline is {first} on f32"
    note = f"no installed library multiplies {problem.dtype}: the baseline is {first} on f32"
    if not torch.multiplies(problem):
        return note
    return f"{note}; {torch.install} gives one that does"


def _default_library(problem: Problem, limit: str) -> str:
    """Returns OpenBLAS for f32 and f64, else oneDNN: torch's, which is newer and called faster, or its own.

    Where neither multiplies the problem's type, or not well on the processor, OpenBLAS multiplies it as f32,
    and its name says so.
    """
    if problem.dtype in LIBRARIES[OPENBLAS].dtypes:
        return OPENBLAS
    isa = describe_machine(limit).isa
    for name in (ONEDNN_TORCH, ONEDNN):
        if _is_able(name, problem) and isa not in LIBRARIES[name].slow_isas:
            return name
    return OPENBLAS


def _is_able(name: str, problem: Problem, *, widens: bool = False) -> bool:
    library = LIBRARIES[name]
    is_type = widens or bool(problem.weights) or problem.dtype in library.dtypes
    is_able = library.multiplies(problem) and is_type
    is_batch_of_i8 = problem.dtype == "i8" and problem.batch > 1
    return is_able and not (name == ONEDNN_TORCH and is_batch_of_i8) and library.find() is not None
