"""Every measured figure on a page is that of a results file; every setting is that of the code.

Decisions say what was measured on their day. Blocks of code show commands, and outputs that other tests read.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_check.budget import TOTAL_S
from docs.generators import PART
from tests.docs.guide import BLOCK, ROOT
from tests.targets.cpu import dishonest_fusions, more_dishonest_kernels
from tests.targets.cpu.dishonest_kernels import FAULTING, LEAVING, PASSING, WRONG
from tuner.analysis.ratios import ALIGNMENT_LIMIT, WIDTH_LIMIT
from tuner.analysis.slowdown import PERCENTILES, SlowdownLimits
from tuner.elsewhere.fleet.server import RETRY_LIMIT_S
from tuner.elsewhere.fleet.tables import BLOB_LIMIT_BYTES, FleetSettings
from tuner.gpu.ptxsim.engine import SECONDS_LIMIT
from tuner.gpu.run.sampled_launches import REFERENCES_LIMIT_S
from tuner.mlir.programs.entry import OPERATIONS_LIMIT, WHOLE_LIMIT
from tuner.models.fusions.formation import OPS_LIMIT
from tuner.models.library.dispatch.first_use import LEAST_GAIN
from tuner.results.regression.gate import SESSIONS_LIMIT
from tuner.runtime.compiled_files import LIMIT_BYTES
from tuner.runtime.cpu.faulting_memory import FAULTING_BYTES
from tuner.runtime.programs.host_errors import THREADS_LIMIT
from tuner.runtime.timing import SAMPLE_S
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.worker import START_TIMEOUT_S
from tuner.tuning.budget import SHORT_BUDGET_S

DOCS = ROOT / "docs"
COMPUTED = "results.md"  # whole: test_readme.py
OTHERS = (page for page in DOCS.rglob("*.md") if "decisions" not in page.parts and page.name != COMPUTED)
PAGES = sorted(str(page.relative_to(DOCS)) for page in OTHERS)
UNIT = r"(?:%|[mun]?s|[kM]B|[KM]iB|G?FLOP/s|G?flop/s|jobs|minutes?|seconds?|hours?|times (?:as|per|faster))"
FIGURE = re.compile(rf"\b\d[\d.,]* {UNIT}(?!\w)|\b\d+ of \d[\d,]*\b|\b\d+ \w+ (?:slowdowns|kernels)\b")


@cache
def results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def row(name: str, **having: Any) -> Any:
    (found,) = (each for each in results(name)["rows"] if having.items() <= each.items())
    return found


def measured() -> Iterator[tuple[str, str]]:
    yield from (("concepts/fleet.md", text) for text in (*simulated_fleets(), *real_fleets()))
    yield from (("guides/gate.md", text) for text in decisions_of_gate())


def decisions_of_gate() -> Iterator[str]:
    gate = results("gate")["summary"]
    caught, alarms, load = gate["caught"], gate["false_alarms"], gate["load"]
    yield f"calibrated to make a call {gate['injected_share'] * 100:.0f} % longer"
    yield (
        f"(load {load[0]:.0f} to {load[-1]:.0f}), {caught['slower']} of {caught['of']} slowdowns were "
        f"caught, {gate['unclear']} were called unclear, and {alarms['slower']} of {alarms['of']} unchanged"
    )


def simulated_fleets() -> Iterator[str]:
    simulated = results("fleet_simulated")
    settings = simulated["settings"]
    yield f"{settings['evaluations']} trials, {settings['seeds']} seeds"
    within = {each["pending"]: each["median_trials"] for each in simulated["staleness"]}
    shown = (1, 2, 3, 4, 8, 16)
    trials = " | ".join(f"{within[pending]:.1f}" for pending in shown)
    yield f"| proposals in flight | {' | '.join(map(str, shown))} |"
    yield f"| trials until 95 % of the optimum, median | {trials} |"


def real_fleets() -> Iterator[str]:
    small, large = (row("fleet_idle", shape=shape) for shape in ("256x256x256", "512x512x512"))
    yield (
        f"(load {small['load']:.0f}), the device waited {small['idle_share'] * 100:.1f} % of the search at "
        f"256x256x256 and {large['idle_share'] * 100:.1f} % at 512x512x512 ({small['trials']} trials each"
    )
    plain, coded = (row("fleet_real", measured="jobs", code_bytes=size) for size in (0, 100_000))
    yield (
        f"takes {plain['jobs_per_s']:.0f} jobs per second on two cores at load {plain['load']:.1f}, with "
        f"server, two nodes and driver on them, and {coded['jobs_per_s']:.0f} where each job brings "
        f"{coded['code_bytes'] // 1000} kB of code"
    )


def settings() -> Iterator[tuple[str, str]]:
    interval = f"{PERCENTILES[1] - PERCENTILES[0]:.0f} % interval"
    excluded = f"a slowdown of {SlowdownLimits.up_to().excluded * 100:.1f} % is ruled out"
    yield "guides/gate.md", f"gives the {interval} of the median over sessions"
    yield "guides/gate.md", f"{excluded}, or {SESSIONS_LIMIT} sessions"
    yield "guides/gate.md", f"| not slower | {excluded} |"
    tolerated = f"{SlowdownLimits.up_to().tolerated * 100:.0f} %"
    yield "guides/gate.md", f"lies above {tolerated} and above the noise"
    yield "guides/gate.md", f"A slowdown below {tolerated}."
    yield "guides/gate.md", f"{SESSIONS_LIMIT} sessions were too noisy"
    yield "guides/pytorch.md", f"{LIMIT_BYTES >> 20} MB"
    yield (
        "guides/pytorch.md",
        "a quarter of the weights or 4 MiB",
    )  # MASK_BYTES, of a module that imports PyTorch
    limits = Limits()
    yield (
        "guides/troubleshooting.md",
        f"{START_TIMEOUT_S:.0f} s to start, {limits.compile_timeout_s:.0f} s to compile",
    )
    yield (
        "guides/troubleshooting.md",
        f"{limits.evaluation_timeout_s:.0f} s and the time of its calls to evaluate",
    )
    yield "concepts/fleet.md", f"after its lease ({FleetSettings().lease_s:.0f} s;"
    yield "concepts/fleet.md", f"a timeout of {RETRY_LIMIT_S / 60:.0f} minutes"
    yield "concepts/fleet.md", f"more than {BLOB_LIMIT_BYTES >> 20} MiB"
    yield "concepts/fleet.md", "a node reports what cannot be: 0 s"
    for text in (
        f"samples of {SAMPLE_S * 1e3:.0f} ms or more",
        "has a 95 % bootstrap interval",  # of tuner.runtime.timing.summarize
        "the 95 % interval of the ratio contains 1",
        f"not in a budget below {SHORT_BUDGET_S:.0f} s",
        f"the interval is wider than {WIDTH_LIMIT * 100:.0f} % to a side",
    ):
        yield "concepts/how-results-are-made.md", text
    yield "concepts/glossary.md", "so no share is above 100 %"
    yield "concepts/what-is-verified.md", f"{FAULTING_BYTES >> 20} MiB on each side fault"
    yield "concepts/what-is-verified.md", f"reads or writes more than {FAULTING_BYTES >> 20} MiB away"
    yield from (("concepts/what-is-verified.md", text) for text in kernels_that_cheat())
    yield "guides/programs.md", f"or {SECONDS_LIMIT:.0f} seconds of the processor in one loop"
    yield "guides/report.md", "time with its 95 % interval"
    for page in ("guides/your-kernel.md", "guides/pytorch.md"):
        yield page, ".. times as fast (95 % interval ..): worth it"  # as tuner/results/output prints a gain
    yield "guides/gpu-check.md", f"within {math.ceil(TOTAL_S / 60)} minutes"
    yield "guides/gpu-check.md", "cut those above 40 MiB"  # as the command below does: split -b 40M
    yield "guides/tuning.md", f"by more than {(ALIGNMENT_LIMIT - 1) * 100:.0f} % and"
    yield "guides/model-shapes.md", f"where it wins by {LEAST_GAIN * 100:.0f} % or more"
    yield "reference/programs.md", f"at most {OPERATIONS_LIMIT:,} operations"
    yield "reference/programs.md", f"at most {WHOLE_LIMIT:,} linalg and elementwise operations"
    yield "reference/programs.md", f"A fusion has {OPS_LIMIT} operations at most"
    yield "reference/programs.md", "compile within two minutes on one core"
    yield "reference/programs.md", f"after {THREADS_LIMIT} of them the program says so"
    yield "guides/programs.md", f"it gets {REFERENCES_LIMIT_S:.0f} seconds of a run"


def kernels_that_cheat() -> Iterator[str]:
    farthest_mib = max(int(found[1]) for name in FAULTING if (found := re.search(r"(\d+) MiB", name)))
    yield f"one element to {farthest_mib} MiB away, or write to A or B | {len(FAULTING)} | search:"
    yield f"or cut numbers to 16 bits or fewer | {len(WRONG)} | search:"
    yield f"round in another way after they ran | {len(LEAVING)} | search:"
    finders = Counter(finder for finder, _ in more_dishonest_kernels.KERNELS.values())
    for finder, name in (
        (more_dishonest_kernels.SEARCH, "search"),
        (more_dishonest_kernels.TIMING, "timing"),
        (more_dishonest_kernels.FINAL, "final"),
    ):
        yield f" | {finders[finder]} | {name} |"
    passing = [
        name
        for name, (finder, _) in more_dishonest_kernels.KERNELS.items()
        if finder == more_dishonest_kernels.PASSES
    ]
    yield from (f"| {name} |" for name in (*passing, *PASSING) if name != "honest dots")
    numbers = Counter(kernel.shown_by for kernel in dishonest_fusions.KERNELS.values())
    counts = [f"{count} by {number}" for number, count in numbers.most_common()]
    yield f"{len(dishonest_fusions.KERNELS)} fusions that cheat are all found before they are timed"
    yield f"{', '.join(counts[:-1])} and {counts[-1]}"


TEXTS = [*measured(), *settings()]


def prose(page: Path) -> str:
    """Returns a page without its blocks, with single spaces."""
    return " ".join(BLOCK.sub("", PART.sub("", page.read_text())).split())


@pytest.mark.parametrize(("page", "text"), TEXTS, ids=[f"{page}: {text[:50]}" for page, text in TEXTS])
def test_a_page_has_the_figures_of_the_files(page: str, text: str) -> None:
    assert text in prose(DOCS / page)


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_of_a_page_is_one_of_these(page: str) -> None:
    text = prose(DOCS / page)
    for known in (known for place, known in TEXTS if place == page):
        text = text.replace(known, "")
    assert FIGURE.findall(text) == []


@pytest.mark.parametrize("text", ["it took 8 minutes", "waits 4.8 % of it", "12 of 330 cases", "251 GFLOP/s"])
def test_a_figure_is_found(text: str) -> None:
    assert FIGURE.search(text)
