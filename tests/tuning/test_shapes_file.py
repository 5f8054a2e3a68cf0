from pathlib import Path

import numpy as np
import pytest

from tuner.core.errors import UsageError
from tuner.core.machine import variables_of
from tuner.core.problem import BatchMatmul, Matmul, Problem
from tuner.core.processors import processor_of
from tuner.search.cost_model.configurations import model_of
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.tuning.campaign import NamedProblem
from tuner.tuning.campaign_session import PoolProblem, projected_pool
from tuner.tuning.shapes_file import read_shapes

EVERYTHING = """\
# the layers of a model
- {op: matmul, shape: 128x768x768, count: 12, name: attention}
- shape: [8, 64, 64, 32]
  dtype: bf16
  layout: nt
  output: bf16
- 1x768x3072
- {shape: 1X768x3072, count: 3, name: "out"}
- {op: batch_matmul, shape: 2x4x4x4, epilogue: bias_relu, align: any, cache: cold}
- {shape: 4x4x4, align: 64, dtype: f64, output: f64}
"""


def written(tmp_path: Path, text: str, name: str = "shapes.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_yaml_and_csv_give_each_problem_once_with_its_count_and_names(tmp_path: Path) -> None:
    expected = (
        NamedProblem(Matmul(128, 768, 768), "attention", 12),
        NamedProblem(BatchMatmul(8, 64, 64, 32, "bf16", "nt", output="bf16")),
        NamedProblem(Matmul(1, 768, 3072), "out", 4),
        NamedProblem(BatchMatmul(2, 4, 4, 4, epilogue="bias_relu", align="any", cache="cold")),
        NamedProblem(Matmul(4, 4, 4, "f64", align=64)),
    )
    assert read_shapes(written(tmp_path, EVERYTHING)) == expected
    nested = "shapes:\n" + "".join(f"  {line}\n" for line in EVERYTHING.splitlines())
    assert read_shapes(written(tmp_path, nested, "nested.yml")) == expected
    text = 'shape,name,count,dtype\n128x768x768,"q, k",12,\n\n 4x8x16 ,,,f64\n'
    assert read_shapes(written(tmp_path, text, "shapes.csv")) == (
        NamedProblem(Matmul(128, 768, 768), "q, k", 12),
        NamedProblem(Matmul(4, 8, 16, "f64")),
    )
    with pytest.raises(UsageError, match=r"shapes\.txt: found the suffix '\.txt', allowed \.yaml, \.csv"):
        read_shapes(tmp_path / "shapes.txt")
    with pytest.raises(UsageError, match="cannot be read"):
        read_shapes(tmp_path / "absent.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {shape: 8x8}", r"shapes\.yaml: line 1: shape: found '8x8', allowed MxNxK"),
        ("- {shape: 8x8x8}\n- {op: matmul}", r"shapes\.yaml: line 2: shape: is missing"),
        ("- {shape: 8x8x8}\n\n- {shap: 8x8x8}", r"shapes\.yaml: line 3: key: found 'shap', allowed"),
        ("- {shape: 8x8x8, op: conv}", r"line 1: op: found 'conv', allowed matmul, batch_matmul"),
        ("- {shape: 8x8x8, dtype: f31}", r"line 1: dtype: found 'f31'"),
        ("- {shape: 8x8x8, layout: 1}", r"line 1: layout: found 1, allowed a text"),
        ("- {shape: 8x8x8, count: 0}", r"line 1: count: found 0, allowed 1\.\."),
        ("- {shape: 8x8x8, count: many}", r"line 1: count: found 'many', allowed an integer"),
        ("- {shape: 8x8x8, count: 1.5}", r"line 1: count: found 1\.5, allowed an integer"),
        ("- {shape: 0x8x8}", r"line 1: size m: found 0"),
        ("- {shape: 8x8x8, op: batch_matmul}", r"line 1: shape: found '8x8x8', allowed BxMxNxK"),
        ("- {shape: 8x8x8, shape: 8x8x8}", r"line 1: the key 'shape' is given twice"),
        ("- {shape: 8x8x8}\n- 7", r"line 2: found 7, allowed such as"),
        ("shape: 8x8x8", r"shapes\.yaml: is no list of problems"),
        ("", r"shapes\.yaml: is no list of problems"),
        ("[]", r"shapes\.yaml: has no problem"),
        ("- {shape: 8x8x8", r"shapes\.yaml: line \d+, column \d+: found no YAML"),
        ("shape,shap\n", r"shapes\.csv: line 1: key: found 'shap', allowed"),
        ("shape,shape\n", r"shapes\.csv: line 1: the key 'shape' is given twice"),
        ("shape,count\n8x8x8,2\n8x8x8\n", r"shapes\.csv: line 3: found 1 fields, allowed 2"),
        ("shape,count\n8x8x8,-2\n", r"shapes\.csv: line 2: count: found '-2', allowed an integer"),
        ("name\nfirst\n", r"shapes\.csv: line 2: shape: is missing"),
        ('shape\n"8x8x8', r"shapes\.csv: line 2: found no CSV"),
        ("shape\n", r"shapes\.csv: has no problem"),
    ],
)
def test_an_error_is_one_line_with_line_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        read_shapes(written(tmp_path, text, "shapes.csv" if "csv" in message else "shapes.yaml"))
    assert "\n" not in raised.value.message


# What a campaign tries of each problem: the columns of all, projected onto it.


SHIPPED = load_space_file(default_space_file())
MACHINE = processor_of("sapphirerapids").machine
NAMES = tuple(f"matmul_cpu_{kind}" for kind in ("packed", "direct", "dot"))
FIRST = tuple(point for name in NAMES for point in SHIPPED.strategy(name).first)


def place(problem: Problem, count: int = 1) -> PoolProblem:
    variables = variables_of(problem, MACHINE, 1)
    return PoolProblem(problem, count, spaces_for(SHIPPED, problem, MACHINE.isa, variables, None))


def test_every_column_is_projected_onto_every_problem() -> None:
    places = (place(Matmul(128, 768, 768)), place(Matmul(1, 768, 768), 3))
    pool = projected_pool(places, FIRST, MACHINE, 1)
    assert (pool.counts, pool.columns) == ((1, 3), FIRST)
    for each, row in zip(places, pool.candidates, strict=True):
        by_name = {space.strategy: space for space in each.spaces}
        for column, candidate in zip(FIRST, row, strict=True):
            if candidate is not None:
                assert candidate.strategy == column.strategy
                assert by_name[candidate.strategy].violated(candidate) is None
    packed, _, dots = ([at for at, column in enumerate(FIRST) if column.strategy == name] for name in NAMES)
    assert all(pool.candidates[1][at] is None for at in packed)  # m = 1
    assert all(row[at] is None for row in pool.candidates for at in dots)  # layout nn


def test_costs_and_preferences_are_those_of_the_projection() -> None:
    problem = Matmul(100, 300, 200)
    here = place(problem)
    pool = projected_pool((here,), FIRST, MACHINE, 1)
    feasible = FeasibleSet.of(here.spaces)
    projected = zip(pool.candidates[0], pool.costs[0], pool.is_demoted[0], strict=True)
    for candidate, cost, is_demoted in projected:
        if candidate is None:
            assert (cost, is_demoted) == (np.inf, False)
            continue
        row = feasible.row_of(candidate)
        assert row is not None
        assert is_demoted == (feasible.demoted_by(candidate) is not None)
        at = [space.strategy for space in feasible.spaces].index(candidate.strategy)
        model = model_of(feasible.spaces[at], problem, MACHINE, 1)
        assert model is not None
        within = row - sum(map(len, feasible.index[:at]))
        costs = model.costs(feasible.index[at][within : within + 1], {})
        assert cost == pytest.approx(float(costs[0]))
    bf16, columns = Matmul(64, 64, 64, dtype="bf16"), SHIPPED.strategy("matmul_cpu_amx").first
    pool = projected_pool((place(bf16),), columns, MACHINE, 1)
    assert set(pool.costs[0]) == {np.inf}
    assert any(candidate is not None for candidate in pool.candidates[0])
