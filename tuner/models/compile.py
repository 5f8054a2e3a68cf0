"""``tuner.compile_program``: makes a Python function of an MLIR function, compiled in a child process."""

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tuner.core.candidate import TargetName
from tuner.core.device_programs import DeviceOptions, Form
from tuner.core.dtypes import IEEE
from tuner.core.dynamic_sizes import SizeRange, Sizes, sizes_text
from tuner.core.errors import EXCEEDED, TIMED_OUT, CandidateError, Stage, UsageError
from tuner.core.fusions import NEW_VALUE, Fusion
from tuner.core.problem import Problem
from tuner.core.progress import CompileObserver
from tuner.core.typed_arguments import typed_arguments
from tuner.mlir.ir.resources import Data, SplitPayload, constants_bytes, mapped_payload, split_payload
from tuner.models.children import CompilingChildren, shown_progress
from tuner.models.compile_work import (
    compile_and_check,
    formed_fusions,
    formed_program,
    kept_program,
    linked_program,
    may_be_fused,
    missing_fusions,
    packed_ahead,
    tuned_problems,
    with_schedules_read,
)
from tuner.models.compiler import CompiledProgram, payload_text
from tuner.models.dynamic.specialization import StaticProgram, program_of_sizes, required, specialized
from tuner.models.execution import host_function
from tuner.models.payload_errors import named_in_errors
from tuner.models.request import ProgramOptions, ProgramRequest, program_support, require_on_cpu
from tuner.models.run.sized_function import SizedFunction
from tuner.models.service import NAME
from tuner.results.database_name import naming_database
from tuner.runtime.process_state import return_free_memory
from tuner.runtime.programs.devices import device_runtime
from tuner.targets import registry
from tuner.targets.backends import resolve_target

if TYPE_CHECKING:
    from tuner.gpu.run.device_function import DeviceFunction
    from tuner.models.run.fused_program import FusedFunction
    from tuner.models.run.host_function import HostFunction

# prefixes of a worker's message about how its child process ended
ENDS = ("killed by", "exited", TIMED_OUT, EXCEEDED)
TIMEOUT_S = 600.0  # of one program, without the start of the child process
Value = TypeVar("Value")


@typed_arguments
def compile_program(
    payload: str | Path,
    target: str = "auto",
    *,
    entry: str | None = None,
    scripts: Mapping[Problem, str] | None = None,
    form: Form = "streams",
    device_arguments: bool = False,
    pinned: bool = False,
    chip: str = "",
    order: str = "fifo",
    seed: int = 0,
    db: str | Path | None = None,
    threads: int = 1,
    math: str = IEEE,
    sizes: str = "",
) -> "DeviceFunction | FusedFunction | HostFunction | SizedFunction":
    """Compiles a function of MLIR text, or of a file, into ``program(*arrays, stream=None)``.

    The compiler runs in a child process, so that its crash becomes a CandidateError.

    Args:
        payload: MLIR text, or the path of a file with one function to run.
        target: "cpu", "cuda", "cuda:sm_90", "simulator"; "auto": the first target of this machine whose code
            can be timed here, as a rule the CPU.
        entry: name of the function; None: the public one, or ``main`` where there are several.
        scripts: bound transform scripts by problem, as ``run.best.script``, for matmuls of the payload; a
            matmul without one gets, on a GPU, that of the best trial in ``db``, else an initial configuration
            of the shipped search space, or becomes loops if no strategy supports it.
        form: for GPUs, how work is ordered: "streams", "tokens" (asynchronous, each call with its own
            streams) or "sync".
        device_arguments: take arrays in device memory (DLPack, ``__cuda_array_interface__``), not numpy
            arrays.
        pinned: whether host buffers that are copied are pinned.
        chip: chip to generate code for, such as "sm_90"; "": the target's.
        order: for the simulator: order in which work of several streams runs, "fifo", "lifo" or "random".
        seed: for the simulator: seed of a random order.
        db: path or URL of a results database, whose best trials schedule the CPU's fusions and a GPU's
            matmuls; None: that of ``TUNER_DB``, else the user's own, if there is one. A fusion that was not
            tuned takes the configuration of a similar fusion, or its initial configuration; so does a matmul.
            The simulator takes trials that a GPU with its chip was timed with.
        threads: for the CPU: on how many threads fusions run, 1 to 256, the caller's included; more threads
            than processors are slow. Fusions with little work, and programs that are computed as a whole, run
            on the caller's thread alone.
        math: for GPUs: how matmuls of f32 multiply, "ieee", "tf32" or "tf32x3", as of ``Matmul``; they then
            take trials of that mode.
        sizes: for the CPU: the range of the size n that every ``?`` of the payload's arguments is, such as
            "1..4096"; "1..512,1..8" has a range of a second size m, too. The attribute ``tuner.sizes`` of an
            argument says what each ``?`` is: ``%x: tensor<?x?xf32> {tuner.sizes = ["m", "n"]}``.

    Returns:
        The function. Where the program allows it, the function runs as fusions, else as a whole, and
        ``why_no_fusions`` says why. On the CPU each fusion has a schedule and constants are packed once. On a
        GPU and on the simulator fusions become kernels, constants stay on the device from call to call, and
        ``as_graph(*arrays)`` captures a call as a CUDA graph. Close the function with ``close()``. With
        ``sizes`` a ``SizedFunction``, called with arrays of any n of the range: it compiles programs of a few
        static sizes, each at the first call that needs it (``prepare`` does so before).

    Raises:
        UsageError: an argument does not fit, a named database does not exist, or the payload does not parse
            or is not a valid program.
        CandidateError: the payload cannot be lowered, or the compiler failed, crashed or timed out.
        DeviceError: the GPU or its driver refused.

    Example:
        >>> import numpy as np
        >>> import tuner
        >>> twice = "func.func @twice(%x: !t) -> !t { %y = arith.addf %x, %x : !t return %y : !t }"
        >>> payload = f"!t = tensor<4xf32> {twice}"
        >>> program = tuner.compile_program(payload, target="cpu")
        >>> program(np.ones(4, np.float32))
        array([2., 2., 2., 2.], dtype=float32)
    """
    from tuner.results.database import known_url  # loads SQLAlchemy

    device = DeviceOptions(form=form, device_arguments=device_arguments, pinned=pinned)
    options = ProgramOptions(device, order, seed, threads=threads, math=math)
    backends = registry.real_backends()
    resolved = resolve_target(target, backends, chip)
    options.require_suiting(resolved, backends)
    bound = tuple((scripts or {}).items())
    text = payload_text(payload)
    support = program_support(resolved, backends)
    with naming_database(db):
        database = known_url(db)
    request = ProgramRequest(text, resolved, entry, options, bound, database=database)
    name = "payload" if text == payload else str(payload)
    if sizes:
        return sized_function(request, SizeRange.parse(sizes), name)
    with named_in_errors(name, text):
        compiled = compile_in_child(request)
    if not support.has_device:
        return host_function(compiled)
    opened = support.open_device(resolved.detail, order, seed)
    program: DeviceFunction = device_runtime().function(
        compiled.code, opened, sys.stdout.write, compiled.why_no_fusions
    )
    return program


# Compiles programs in a child process, so that no crash or hang of a compiler ends the user's process.
#
# The child process also compiles the host code to machine code once, as a check: loading the same code in
# this process is then known to work. Each thread keeps its child process for the next program, because
# starting a child process takes a second.


def compile_in_child(request: ProgramRequest) -> CompiledProgram:
    """Returns the compiled program of a request: from the cache if it has all parts of the program.

    Otherwise compiles in a child process, which the calling thread keeps for its next program. Raises
    UsageError for mistakes of the user, CandidateError where compilation fails, crashes or takes over 600 s.
    """
    payload = split_payload(request.text)
    return _compiled(replace(request, text=payload.text), payload)


def _compiled(request: ProgramRequest, payload: SplitPayload) -> CompiledProgram:
    """Returns the program of a payload, whose text is the request's: kept, or compiled in a child."""
    with shown_progress() as observe:
        compiled = kept_program(request, payload.resources, observe)
        if compiled is None:
            compiled = _compiled_in_child(request, payload, observe)
            call_in_kept_child(return_free_memory)
    return_free_memory()  # of what weights were computed from
    return compiled


def _compiled_in_child(
    request: ProgramRequest, payload: SplitPayload, observe: CompileObserver
) -> CompiledProgram:
    """Compiles a payload, whose text is the request's; a child gets no data of a program of fusions."""
    try:
        compiled = _compiled_fusions(request, payload.resources, observe)
        if compiled is not None:
            return compiled
        with mapped_payload(payload) as text:
            work = partial(compile_and_check, replace(request, text=text), has_data=False)
            compiled = call_in_kept_child(work, constants_bytes(text))
        compiled = compiled.with_data(payload.resources)
    except CandidateError as error:
        failure = error.failure
        if failure.stage is Stage.BIND:
            raise UsageError(failure.reason) from error
        crash = "payload: compiler: " if failure.reason.startswith(ENDS) else ""
        raise CandidateError(failure.stage, crash + failure.reason) from error
    if compiled.image is None:
        return compiled
    return replace(compiled, image=compiled.image.with_shared_weights())


def _compiled_fusions(
    request: ProgramRequest, resources: Mapping[str, Data], observe: CompileObserver
) -> CompiledProgram | None:
    """Compiles a program as fusions on the host; returns None for one that is compiled as a whole.

    Children get its text. What fusions need to know of the data of constants is found in this process, which
    packs the weights while a child links, too: they are in memory once as the caller has them, and once
    packed. It alone reads the results database, once.
    """
    formed = call_in_kept_child(partial(formed_program, request)) if may_be_fused(request) else None
    if formed is None:
        return None
    try:
        weights = formed.with_data(resources).weights
        formed = formed.with_facts_of_data(resources)
    except CandidateError:  # data that are missing or wrong: compiling as a whole says which
        return None
    if request.database:
        problems = call_in_kept_child(partial(tuned_problems, request, formed))
        request = with_schedules_read(request, problems)
    children = CHILDREN.of_this_thread()
    children.compile_fusions(partial(missing_fusions, request, formed), TIMEOUT_S, observe)
    with ThreadPoolExecutor(1) as pool:
        packing = pool.submit(packed_ahead, request, formed, weights, observe)
        linked = call_in_kept_child(partial(linked_program, request, formed))
        packed = packing.result()
    if linked is None:
        return None
    return CompiledProgram.of_image(linked.with_packed(packed, weights))


def sized_function(request: ProgramRequest, sizes: SizeRange, name: str) -> SizedFunction:
    """Returns a program of a dynamic size for the CPU; each static program is compiled at its first call.

    ``name``: the program's, for error messages. Raises UsageError for another target, for scripts, and for a
    program with an operation that could be wrong at a padded size.
    """
    require_on_cpu(request.target, sizes)
    if NEW_VALUE in request.text:
        raise UsageError(f"sizes {sizes.text} cannot be combined with an argument that is written in place")
    if request.scripts:
        raise UsageError(f"sizes {sizes.text} cannot be combined with scripts: matmuls differ by size")

    payload = split_payload(request.text)

    def specialize(size: Sizes) -> StaticProgram:
        with named_in_errors(name, request.text):
            try:
                work = partial(specialized, payload.text, request.entry, size, sizes.least)
                return required(call_in_kept_child(work))
            except CandidateError as error:
                if error.failure.stage is Stage.BIND:
                    raise UsageError(error.failure.reason) from error
                raise

    def compile_static(static: StaticProgram) -> "FusedFunction | HostFunction":
        with named_in_errors(f"{name} at n = {sizes_text(static.size)}", ""):
            static_request = replace(request, text=static.text, entry=None)
            return host_function(_compiled(static_request, SplitPayload(static.text, payload.resources)))

    return program_of_sizes(sizes, specialize, compile_static)


def compile_on_host(
    payload: SplitPayload, *, db: str | Path | None = None, threads: int = 1
) -> "FusedFunction | HostFunction":
    """Compiles a payload for the CPU as ``compile_program(..., target="cpu")`` does.

    Args:
        payload: MLIR text and the data of its constants.
        db: path or URL of the database whose best trials schedule fusions; None: the default one.
        threads: number of threads that the program may use, 1 to 256.

    Raises UsageError for mistakes of the user, CandidateError for a payload that does not compile.
    """
    from tuner.results.database import known_url  # loads SQLAlchemy

    options = ProgramOptions(threads=threads)
    target = TargetName("cpu")
    options.require_suiting(target, registry.real_backends())
    with naming_database(db):
        request = ProgramRequest(payload.text, target, None, options, database=known_url(db))
    with named_in_errors("payload", payload.text):
        return host_function(_compiled(request, payload))


def call_in_kept_child(work: Callable[[], Value], data_bytes: int = 0) -> Value:
    """Calls ``work``, a ``partial`` of an importable function, in the calling thread's kept child process.

    ``data_bytes``: of the constants that ``work`` maps, for which the child may have more memory. Raises
    CandidateError where it fails, crashes or takes more than 600 s.
    """
    return CHILDREN.of_this_thread().call(work, Stage.COMPILE, TIMEOUT_S, data_bytes)


def fusions_in_child(text: str) -> tuple[Fusion, ...]:
    """Returns the fusions of a payload on this processor; () where it has to be compiled as a whole.

    The payload is read in the calling thread's child process.
    """
    return call_in_kept_child(partial(formed_fusions, text))


@contextlib.contextmanager
def children_in_background() -> Iterator[Callable[[], None]]:
    """Context manager around the compilation of one program: starts processes ahead of time.

    Yields a function that starts the calling thread's child process, which compiles programs, and helper
    processes, which compile its fusions in parallel; it returns at once. The helpers end when all fusions are
    compiled, at the latest when the context ends; the child stays for the thread's next program.
    """
    children = CHILDREN.of_this_thread()
    try:
        yield children.start
    finally:
        children.end_helpers()


class _Children(threading.local):
    """The child process of each thread that compiles programs; the child process ends with its thread."""

    def __init__(self) -> None:
        self._children: CompilingChildren | None = None
        self._owner = 0  # process id: a process that was forked has no child of its parent's

    def of_this_thread(self) -> CompilingChildren:
        if self._children is None or self._owner != os.getpid():
            children = CompilingChildren(NAME)
            owner = os.getpid()
            self._children = children
            self._owner = owner
            # a process that is forked later must not end the child of its parent
            atexit.register(lambda: children.close() if os.getpid() == owner else None)
        return self._children


# process-wide on purpose: the next program of a thread reuses the thread's child process
CHILDREN = _Children()
