"""Two scripts of one problem, and a script against a library, timed interleaved on this machine."""

import hashlib
from functools import partial

from tuner.analysis.paired_slowdown import InterleavedSession, PairedSlowdown, paired_slowdown
from tuner.core.problem import Problem
from tuner.core.target import Artifact, Effort, Script
from tuner.tuning.parts.child_call import call_in_child, child_memory_bytes
from tuner.workers.timing_lock import TimingLock, holder_text

SESSIONS = 3
EFFORT = Effort(budget_s=0.05, min_samples=12, max_samples=60)  # of each code in a session
TIMEOUT_S = 240.0


def slower_by(problem: Problem, script: str, reference: str) -> PairedSlowdown:
    """Returns how much longer a script's code takes than a reference script's, both for one thread.

    Both are compiled now, verified, and timed in a child process on the same arrays. Raises TunerError
    where one of them fails or is wrong.
    """
    (found,) = _in_child(problem, partial(script_slowdowns, (problem,), script, reference))
    return found


def slower_in_library(problems: tuple[Problem, ...], library: str, script: str) -> tuple[PairedSlowdown, ...]:
    """Returns, per problem, how much longer a library's code takes than the code of its entry's script.

    The library is applied to a function from tensors to a tensor, the script to the payload that it was tuned
    on. Otherwise as ``slower_by``.
    """
    return _in_child(problems[0], partial(library_slowdowns, problems, library, script))


def script_slowdowns(
    problems: tuple[Problem, ...], script: str, reference: str
) -> tuple[PairedSlowdown, ...]:
    """Does the work of ``slower_by`` in this process."""
    return tuple(
        _timed(problem, _compiled(problem, script), _compiled(problem, reference)) for problem in problems
    )


def library_slowdowns(problems: tuple[Problem, ...], library: str, script: str) -> tuple[PairedSlowdown, ...]:
    """Does the work of ``slower_in_library`` in this process."""
    return tuple(_timed(problem, *_library_and_script(problem, library, script)) for problem in problems)


def _in_child(problem: Problem, work: partial[tuple[PairedSlowdown, ...]]) -> tuple[PairedSlowdown, ...]:
    with TimingLock("cpu", holder_text(problem)).held():
        return call_in_child("library", work, TIMEOUT_S, child_memory_bytes(problem))


def _compiled(problem: Problem, script: str) -> Artifact:
    from tuner.targets.cpu.compiler import CpuCompiler

    return CpuCompiler().compile(problem, Script.of(script))


def _library_and_script(problem: Problem, library: str, script: str) -> tuple[Artifact, Artifact]:
    from tuner.library.applied_lowering import lower_applied, tensor_program

    own = _compiled(problem, script)
    (partition,) = own.partitions
    code = lower_applied(library, tensor_program(problem, partition.called))
    return Artifact(code, hashlib.sha256(code.encode()).hexdigest(), own.partitions), own


def _timed(problem: Problem, code: Artifact, reference: Artifact) -> PairedSlowdown:
    """Times two codes in sessions, each of which loads both at new addresses, the reference twice."""
    import numpy as np

    from tuner.targets.cpu.evaluator import CpuEvaluator

    sessions = []
    for seed in range(SESSIONS):
        rng, evaluator = np.random.default_rng(seed), CpuEvaluator(threads=1)
        loaded = tuple(evaluator.load(problem, artifact) for artifact in (reference, reference, code))
        for kernel in loaded[1:] if seed == 0 else ():
            evaluator.verify(problem, kernel, rng)
        then, again, current = evaluator.measure_together(problem, loaded, EFFORT, rng)
        sessions.append(InterleavedSession(then.samples_s, again.samples_s, current.samples_s))
    return paired_slowdown(tuple(sessions))
