"""How many configurations are feasible, for each strategy and problem of the golden candidates.

A changed constraint, knob or expression that lets in more, or fewer, shows as a changed number, as in
``tuner space``. Where it is meant: ``pytest tests/space/test_golden_counts.py --update-golden``.
"""

from collections.abc import Callable

import pytest

from benchmarks.golden_hashes.candidates import GoldenCandidate, golden_candidates
from tuner.core.machine import Machine, variables_of
from tuner.core.processors import processor_of
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file

# isa of a candidate -> a processor that has it
DESCRIBED = {"avx512": "sapphirerapids", "avx2": "znver3", "neon": "neoverse-v2"}
SPACE_FILE = load_space_file(default_space_file())


def machine_of(golden: GoldenCandidate) -> Machine:
    """Returns the machine of a candidate: of a processor one with all instruction sets of its isa."""
    if golden.isa in DESCRIBED:
        return processor_of(DESCRIBED[golden.isa]).machine
    return golden.machine


def space_name(golden: GoldenCandidate) -> str:
    machine = DESCRIBED.get(golden.isa, golden.target.text)
    return f"{golden.candidate.strategy}, {golden.problem.key}, {machine}, threads={golden.threads}"


def count_line(golden: GoldenCandidate) -> str:
    machine = machine_of(golden)
    variables = variables_of(golden.problem, machine, golden.threads)
    names = (golden.candidate.strategy,)
    feasible = FeasibleSet.of(spaces_for(SPACE_FILE, golden.problem, machine.isa, variables, names))
    about = "about " if feasible.is_sample else ""
    preferred = int(feasible.is_preferred.sum())
    counts = f"{about}{feasible.total} of {feasible.cartesian}, {preferred} of {feasible.rows} preferred"
    return f"{space_name(golden)}: {counts}"


BY_SPACE = {space_name(golden): golden for golden in golden_candidates()}
OF_STRATEGY = {golden.candidate.strategy: golden for golden in reversed(BY_SPACE.values())}


def test_every_strategy_is_counted() -> None:
    assert OF_STRATEGY.keys() == {entry.name for entry in SPACE_FILE.strategies}


@pytest.mark.slow
def test_the_numbers_of_feasible_configurations_are_those_of_the_golden_file(
    golden: Callable[[str, str], None],
) -> None:
    golden("counts.txt", "".join(f"{count_line(space)}\n" for space in BY_SPACE.values()))
