"""Made-up search spaces, on which the constants of samplers are chosen.

Times are products of effects, as those of kernels are: of single knobs, of ratios and products of knobs, of
switches whose use depends on other knobs; some effects stop where a bound is reached, or count only with
a switch; the slower of two resources decides; there are cliffs, where something no longer fits. The
smallest value of some knobs means "off" and acts as a larger one; some knobs do nothing, so that the best
row has twins. From nearly flat to steep, most spaces with a floor that no row is faster than; what is
measured is noisy. Some knobs go in even steps, and what does not divide is slower; some combinations of
values are far faster or slower than each value alone; sharp bounds make plateaus. Work is handed out in
whole units: a product of knobs that is not a multiple of a warp leaves lanes idle, a tile that does not
divide a size computes what nobody needs. Which knobs take part, how much, and where the best is, is drawn
anew for every space. Nothing is taken from a recording but how flat and how steep spaces are.
"""

import contextlib

import numpy as np
import numpy.typing as npt

from benchmarks.search.replay_space import ReplaySpace
from tuner.core.errors import UsageError
from tuner.space.expressions import Expression, parse
from tuner.space.feasible_set import FeasibleSet, Matrix
from tuner.space.search_space import Knob, SearchSpace

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.integer]

CARTESIAN = (5_000, 400_000)
ROWS = (1_200, 20_000)
STEPS_MIN = 60  # evaluations until random search is close: where fewer do, any search is good
TEXTS = ("row", "column", "tiled", "swizzled", "packed")
SPREAD = (0.06, 3.4)  # logarithm of median over optimum: 1.06 to 30 times
TAIL = (1.5, 6.0)  # limit of the logarithm of slowest over optimum, in spreads
FLOOR_QUANTILE = (0.0, 0.2)  # of the rows, which a floor would make faster than possible
NOISE = (0.002, 0.02)  # deviation of a measurement, as a share
NOISE_SHARE = 1 / 15  # of the spread, at most: else nothing can be found
FAILING_SHARE = 0.03
SHARPNESS = (5.0, 50.0)  # how soon the slower resource decides alone: a sharp one makes plateaus
STEPPED_SHARE = 0.3  # of the numbers, those that go in even steps
STEPPED_LEVELS = (4, 17)
WARPS = (16, 32, 64)  # lanes that go together: half a warp of NVIDIA, a warp, one of AMD
SIZES = (128, 4096)  # of a problem, of which a tile takes a part
UNITS_SHARE = (0.3, 1.0)  # of the time, what grows with the units handed out
JOINT_EFFECT = (0.3, 1.5)  # logarithm of what a combination of values does, in spreads of the other effects


def synthetic_space(seed: int) -> ReplaySpace:
    """Returns the space of a seed; equal seeds give equal spaces."""
    rng = np.random.default_rng((20_261_120, seed))
    while True:
        space = _space(rng)
        if not CARTESIAN[0] <= space.cartesian <= CARTESIAN[1]:
            continue
        with contextlib.suppress(UsageError):  # constraints that leave nothing
            feasible = FeasibleSet.of((space,))
            if not ROWS[0] <= feasible.rows <= ROWS[1]:
                continue
            made = ReplaySpace(f"synthetic-{seed}", feasible, _times_s(feasible.matrix(), rng))
            if made.steps >= STEPS_MIN:
                return made


def _space(rng: np.random.Generator) -> SearchSpace:
    knobs = tuple(_knob(f"k{place}", rng) for place in range(int(rng.integers(7, 12))))
    numbers = [knob for knob in knobs if not knob.is_text and len(knob.choices) > 2]
    if len(numbers) < 3:
        return _space(rng)
    texts = [_constraint(rng, numbers) for _ in range(int(rng.integers(2, 6)))]
    constraints: tuple[Expression, ...] = tuple(
        parse(text, f"constraints[{place}]") for place, text in enumerate(texts)
    )
    return SearchSpace("synthetic", knobs, constraints)


def _knob(name: str, rng: np.random.Generator) -> Knob:
    levels = int(rng.choice([2, 2, 3, 3, 4, 4, 5, 6, 7]))
    if levels > 2 and rng.random() < 0.15:
        return Knob(name, TEXTS[:levels] if levels <= len(TEXTS) else TEXTS)
    if levels == 2:
        return Knob(name, (0, 1))
    if levels > 2 and rng.random() < STEPPED_SHARE:
        step = 1 << int(rng.integers(0, 6))
        return Knob(name, tuple(step * rank for rank in range(1, int(rng.integers(*STEPPED_LEVELS)))))
    smallest = int(rng.integers(0, 4))
    return Knob(name, tuple(1 << (smallest + rank) for rank in range(levels)))


def _constraint(rng: np.random.Generator, numbers: list[Knob]) -> str:
    """Returns a product that must divide a tile, or that must fit."""
    places = rng.choice(len(numbers), 3, replace=False)
    one, other, third = (numbers[place] for place in places)
    if rng.random() < 0.7:
        return f"{one.name} * {1 << int(rng.integers(0, 3))} % ({other.name} * {third.name}) == 0"
    top = int(one.choices[-1]) * int(other.choices[-1])
    return f"{one.name} * {other.name} <= {top >> int(rng.integers(1, 3))}"


def _times_s(matrix: Matrix, rng: np.random.Generator) -> Array:
    varying = [place for place in range(1, len(matrix.levels)) if matrix.levels[place] > 1]
    levels = np.array(matrix.levels)[varying]
    is_ranked = np.array(matrix.is_ordinal)[varying] & (levels > 2)
    codes, aligned = _scales(matrix, varying)
    for place in np.flatnonzero(is_ranked & (rng.random(len(varying)) < 0.2)):
        off = rng.uniform(1, codes[:, place].max() + 1)  # its smallest value means "off"
        codes[codes[:, place] == 0, place] = off
    ranked, switches = _taking_part(np.flatnonzero(is_ranked), np.flatnonzero(~is_ranked), rng)
    sharpness = _log_uniform(SHARPNESS, rng)
    logs = _resource(codes, ranked, switches, rng)
    for _ in range(int(rng.integers(1, 3))):
        other = _resource(codes, ranked, switches, rng)
        logs = _larger(logs, other + np.median(logs) - np.median(other) - rng.uniform(0, 0.5), sharpness)
    logs += _misaligned(codes, aligned, switches, rng)
    for _ in range(int(rng.integers(0, 4))):
        logs += _rounded_up(_numbers(matrix, varying), rng)
    deviation = float(logs.std())
    for _ in range(int(rng.integers(0, 4))):
        effect = rng.choice([-1, 1]) * rng.uniform(*JOINT_EFFECT) * deviation
        logs += effect * _is_together(matrix.rows[:, varying], rng)
    for _ in range(int(rng.integers(2, 6))):
        logs += rng.uniform(0.1, 1.0) * _needs_more(codes, ranked, rng.uniform(0.6, 0.95), rng)
    if rng.random() < 0.7:
        logs = _larger(logs, np.quantile(logs, rng.uniform(*FLOOR_QUANTILE)), sharpness)
    spread = _log_uniform(SPREAD, rng)
    logs = _spread(logs, rng.uniform(*TAIL)) * spread
    logs += rng.normal(0, min(_log_uniform(NOISE, rng), NOISE_SHARE * spread), len(codes))
    times_s = 1e-3 * np.exp(logs)
    if rng.random() < 0.3:
        times_s[rng.random(len(codes)) < FAILING_SHARE] = np.nan
    if rng.random() < 0.2:
        times_s[_needs_more(codes, ranked, rng.uniform(0.8, 0.95), rng)] = np.nan
    return np.asarray(times_s)


def _scales(matrix: Matrix, varying: list[int]) -> tuple[Array, dict[int, Array]]:
    """Returns what effects are made of; by stepped knob, how often 2 divides each row's value."""
    codes = matrix.rows[:, varying].astype(np.float64)
    aligned = {}
    for place, column in enumerate(varying):
        values = matrix.values[column]
        if isinstance(values[0], int) and values[0] > 0 and len(values) > 2 and values[2] == 3 * values[0]:
            ranks = matrix.rows[:, column].astype(np.int64) + 1
            codes[:, place] = np.log2(ranks)
            aligned[place] = np.log2(ranks & -ranks)
    return codes, aligned


def _misaligned(codes: Array, aligned: dict[int, Array], switches: Places, rng: np.random.Generator) -> Array:
    """Returns what values cost that a power of two does not divide, everywhere or only with a switch."""
    logs = np.zeros(len(codes))
    for zeros in aligned.values():
        enough = rng.integers(1, 4)
        cost = rng.lognormal(-1.5, 0.8) * np.maximum(enough - zeros, 0)
        if len(switches) and rng.random() < 0.3:
            cost *= codes[:, rng.choice(switches)] == 0
        logs += cost * (rng.random() < 0.7)
    return logs


def _numbers(matrix: Matrix, varying: list[int]) -> Array:
    """Returns the values of the knobs that are numbers above 0, a column each."""
    taking = [
        place
        for place in varying
        if all(isinstance(value, int) and value > 0 for value in matrix.values[place])
    ]
    columns = [np.array(matrix.values[place], np.float64)[matrix.rows[:, place]] for place in taking]
    return np.array(columns).reshape(len(columns), len(matrix.rows)).T


def _rounded_up(numbers: Array, rng: np.random.Generator) -> Array:
    """Returns what whole units cost: of lanes, where a product fills warps; of tiles, which fill a size."""
    if not numbers.shape[1]:
        return np.zeros(len(numbers))
    taking = rng.choice(numbers.shape[1], min(numbers.shape[1], int(rng.choice([1, 1, 2]))), replace=False)
    product = numbers[:, taking].prod(axis=1)
    if rng.random() < 0.5:
        excess = _excess(product, float(rng.choice(WARPS)))
    else:
        size = 16 * np.rint(_log_uniform(SIZES, rng) / 16)
        excess = _excess(size, np.minimum(product, size))
    return np.asarray(rng.uniform(*UNITS_SHARE) * np.log(excess))


def _excess(given: Array | float, unit: Array | float) -> Array:
    """Returns how many times the given is handed out, in whole units."""
    return np.asarray(np.ceil(given / unit) * unit / given)


def _is_together(codes: Places, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Returns which rows agree with one of them in two to four knobs."""
    taking = rng.choice(codes.shape[1], int(rng.integers(2, 5)), replace=False)
    return np.asarray((codes[:, taking] == codes[rng.integers(len(codes)), taking]).all(axis=1))


def _taking_part(ranked: Places, switches: Places, rng: np.random.Generator) -> tuple[Places, Places]:
    """Returns the knobs that do something: most, at least three of the ranked."""
    is_used = rng.random(len(ranked)) < 0.85
    is_used[rng.choice(len(ranked), 3, replace=False)] = True
    return ranked[is_used], switches[rng.random(len(switches)) < 0.7]


def _resource(codes: Array, ranked: Places, switches: Places, rng: np.random.Generator) -> Array:
    """Returns logarithms of what one resource takes."""
    logs = np.zeros(len(codes))
    for _ in range(int(rng.integers(5, 10))):
        taking = rng.choice(ranked, min(len(ranked), int(rng.choice([1, 2, 3, 4]))), replace=False)
        value = codes[:, taking] @ rng.choice([-1, 1], len(taking))  # a ratio or product of powers of two
        off = value - np.quantile(value, rng.uniform(0, 1) if len(taking) == 1 else rng.uniform(0.2, 0.8))
        above, below = rng.choice([0, 0.5, 1], 2)  # 0: a bound is reached, more changes nothing
        effect = rng.lognormal(-1.5, 0.8) * np.where(off > 0, above * off, -below * off)
        if len(switches) and rng.random() < 0.25:
            effect *= codes[:, rng.choice(switches)] == 0
        logs += effect
    for _ in range(int(rng.integers(1, 4))):
        logs += _pattern(codes, ranked, rng)
    for switch in switches:
        code = codes[:, switch].astype(np.intp)
        surrounding = codes[:, rng.choice(ranked)]
        logs += rng.normal(0, 0.2, 8)[code] + rng.normal(0, 0.1, 8)[code] * (surrounding - surrounding.mean())
    return logs


def _pattern(codes: Array, ranked: Places, rng: np.random.Generator) -> Array:
    """Returns what follows no order: alignment, bank conflicts, what a compiler makes of two numbers."""
    one, other = rng.choice(ranked, 2, replace=False)
    table = rng.normal(0, rng.uniform(0.05, 0.2), (8, 8))
    return np.asarray(table[codes[:, one].astype(np.intp), codes[:, other].astype(np.intp)])


def _needs_more(
    codes: Array, ranked: Places, quantile: float, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Returns which rows need more of something than this share of all does."""
    taking = rng.choice(ranked, int(rng.integers(2, 4)), replace=False)
    needed = codes[:, taking] @ rng.choice([-1, 1, 1], len(taking))
    return np.asarray(needed > np.quantile(needed, quantile))


def _larger(one: Array, other: Array | np.float64, sharpness: float) -> Array:
    """Returns the larger of two logarithms, and a little more where they are alike."""
    return np.asarray(np.logaddexp(sharpness * one, sharpness * other) / sharpness)


def _spread(logs: Array, tail: float) -> Array:
    """Returns logarithms over the optimum, their median 1 and what is far above that drawn in."""
    over = logs - logs.min()
    over = tail * (1 - np.exp(-over / np.median(over) / tail))
    return np.asarray(over / np.median(over))


def _log_uniform(bounds: tuple[float, float], rng: np.random.Generator) -> float:
    return float(np.exp(rng.uniform(*np.log(bounds))))
