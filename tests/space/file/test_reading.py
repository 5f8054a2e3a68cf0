import re
from pathlib import Path
from typing import Any

import pytest

from tests.default_suite import ALL
from tuner.core.candidate import Candidate
from tuner.core.dtypes import INPUT_DTYPES
from tuner.core.epilogues import EPILOGUES
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file import reading, yaml
from tuner.space.file.entries import Divisors, StrategyEntry
from tuner.space.file.reading import SpaceFile, first_rows, load_space_file, parse_space, spaces_for
from tuner.space.file.shipped import shipped_strategies
from tuner.space.file.yaml import default_space_file
from tuner.space.search_space import Knob, SearchSpace

TWO = """
strategies:
  packed:
    ops: [matmul]
    dtypes: [f32, f64]
    isas: [avx512, avx2]
    knobs:
      tile_m: [4, 6, 8]
      tile_k: {divisors_of: k, min: 4, max: 64}
    constraints: ["tile_m <= m", "tile_k * input_bytes <= l1_bytes"]
    first: [{tile_m: 6, tile_k: 8}, {tile_m: 8, tile_k: 999}, {tile_m: 6, tile_k: 8}]
  bf16:
    ops: [matmul]
    dtypes: [bf16]
    layouts: [nn]
    template: mine/bf16.mlir
    knobs: {tile_m: [4]}
"""
LIMITS = (("l1_bytes", 32768),)


def spaces(
    m: int, n: int, k: int, dtype: str = "f32", isa: str = "avx512", names: Any = None, text: str = TWO
) -> tuple[SearchSpace, ...]:
    problem = Matmul(m, n, k, dtype)
    return spaces_for(parse_space(text, "f.yaml"), problem, isa, problem.variables() + LIMITS, names)


def test_names_read_without_the_yaml_reader_are_those_of_the_shipped_file() -> None:
    names = tuple(entry.name for entry in load_space_file(default_space_file()).strategies)
    assert shipped_strategies() == names


def test_strategies_that_can_do_the_problem_are_picked_and_their_knobs_resolved() -> None:
    (space,) = spaces(64, 64, 96)
    assert space.strategy == "packed"
    assert space.knobs == (Knob("tile_m", (4, 6, 8)), Knob("tile_k", (4, 6, 8, 12, 16, 24, 32, 48)))
    assert ("l1_bytes", 32768) in space.variables
    assert [space.strategy for space in spaces(8, 8, 8, "bf16", "none")] == ["bf16"]
    assert [space.strategy for space in spaces(8, 8, 8, names=("packed",))] == ["packed"]


WITH_NONE = (
    "no strategy can do matmul 8x8x8 f32 nn none with none: packed: instruction set: found none, "
    "allowed avx512, avx2; bf16: dtype: found f32, allowed bf16"
)
IMPOSSIBLE = [
    ({"isa": "none"}, f"f\\.yaml: {WITH_NONE}$"),
    ({"names": ("bf16",)}, "no strategy can do matmul .*: bf16: dtype: found f32, allowed bf16$"),
    ({"names": ("pakced",)}, r"f\.yaml: strategy: found 'pakced', allowed packed, bf16"),
    ({"k": 97}, r"packed\.knobs\.tile_k\.divisors_of: k = 97 has no divisor from 4 to 64; widen"),
    ({"text": TWO.replace("tile_m", "m")}, r"knobs\.m: 'm' is a variable; choose a name other than m, n, k"),
    (
        {"text": TWO.replace("l1_bytes", "l9_bytes")},
        r"constraints\[1\]: .*unknown name 'l9_bytes', known: .*tile_k",
    ),
    *(
        (
            {"text": TWO.replace("divisors_of: k", f"divisors_of: {of}")},
            r"divisors_of: .*allowed an integer 1\.\.2147483647",
        )
        for of in ("layout", "k / 2", "m - m", "m * k * 4294967296")
    ),
]


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(("options", "message"), IMPOSSIBLE)
def test_a_problem_that_no_strategy_can_do_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        spaces(**({"m": 8, "n": 8, "k": 7 if "text" in options else 8} | options))


@pytest.mark.parametrize(
    ("bounds", "k", "divisors"),
    [
        ("min: 4, max: 64, extra: [1000, 8]", 256, (4, 8, 16, 32, 64, 1000)),  # whatever the bounds are
        ("min: 1", 49, (1, 7, 49)),
        ("min: 1", 2**31 - 1, (1, 2**31 - 1)),
        ("min: 1", 1, (1,)),
    ],
)
def test_divisors_are_all_found_with_bounds_included(bounds: str, k: int, divisors: tuple[int, ...]) -> None:
    (space,) = spaces(8, 8, k, isa="avx2", text=TWO.replace("min: 4, max: 64", bounds))
    assert space.knobs[1].choices == divisors


def test_knobs_of_the_script_join_those_of_the_file_and_first_points_are_rows() -> None:
    problem, file = Matmul(8, 8, 8), parse_space(TWO, "f")
    declared = {"packed": (Knob("tile_m", (1, 2)), Knob("unroll", (1, 2)))}
    (space,) = spaces_for(file, problem, "avx2", problem.variables() + LIMITS, None, declared)
    assert (space.names, space.knobs[0].choices) == (("tile_m", "tile_k", "unroll"), (4, 6, 8))
    feasible = FeasibleSet.of(spaces(64, 64, 64))
    (row,) = first_rows(file, feasible)
    assert feasible.candidate(row) == file.strategies[0].first[0][1]


LISTED = """\
strategies:
  s:
    ops: [matmul]
    dtypes: [f16, bf16, tf32, i8]
    knobs: {block_k: [32, 64, 128], stores: [direct, tma]}
    constraints: ["block_k * input_bytes == 128"]
    first: [{block_k: [64, 32, 128], stores: tma}, {block_k: 64, stores: direct}]
"""


@pytest.mark.parametrize(("dtype", "block_k"), [("f16", 64), ("bf16", 64), ("tf32", 32), ("i8", 128)])
def test_of_the_values_in_a_list_those_that_a_problem_allows_are_initial_configurations(
    dtype: str, block_k: int
) -> None:
    file = parse_space(LISTED, "f")
    assert [dict(point.choices)["block_k"] for _, point in file.strategies[0].first] == [64, 32, 128, 64]
    problem = Matmul(64, 64, 64, dtype)
    feasible = FeasibleSet.of(spaces_for(file, problem, "avx2", problem.variables() + LIMITS, None))
    first = [dict(feasible.candidate(row).choices) for row in first_rows(file, feasible)]
    others = [{"block_k": 64, "stores": "direct"}] if block_k == 64 else []
    assert first == [{"block_k": block_k, "stores": "tma"}, *others]


def test_an_initial_configuration_is_short_for_one_with_each_value_of_a_list_and_usual_values() -> None:
    usual = "    usual: {block_k: 64, stores: direct}\n"
    first = "    first: [{isa: [avx2, neon]}, {stores: [tma, direct], block_k: [128, 32]}]\n"
    text = LISTED.partition("    first:")[0] + usual + first
    (entry,) = parse_space(text, "f").strategies
    expected = [("avx2", 64, "direct"), ("neon", 64, "direct")]
    expected += [
        ("", 128, "tma"),
        ("", 32, "tma"),
        ("", 128, "direct"),
        ("", 32, "direct"),
    ]  # the last list first
    points = [
        (isa, Candidate.of("s", {"block_k": block_k, "stores": stores})) for isa, block_k, stores in expected
    ]
    assert entry.first == tuple(points)
    assert [point for _, point in points[1:]] == list(entry.first_on("neon"))


def test_usual_values_of_a_known_strategy_are_changed_by_name(tmp_path: Path) -> None:
    change = "  matmul_cpu_amx: {usual: {split: n}, first: [{tiles_m: 2, tiles_n: 2, block_n: 0}]}\n"
    changed = read(f"extends: default\nstrategies:\n{change}", tmp_path).strategy("matmul_cpu_amx")
    (first,) = changed.first_on("")
    assert dict(first.choices)["split"] == "n"
    assert dict(first.choices)["pack_a"] == 1


def test_a_script_path_is_relative_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(TWO)
    file = load_space_file(path)
    assert (file.text, file.script("bf16")) == (TWO, tmp_path / "mine" / "bf16.mlir")
    assert file.script("packed") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"a\.yaml: cannot be read \(No such file or directory\)"),
        (b"ab\xff", "byte 2 is not UTF-8"),
        (b"#" * 4_000_001, "found more than 4000000 bytes"),
    ],
    ids=["missing", "no text", "far too large"],
)
def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "a.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        load_space_file(path)
    with pytest.raises(UsageError, match=r"cannot be read \(Is a directory\)"):
        load_space_file(tmp_path)


SHIPPED = load_space_file(default_space_file())
MINE = """
  mine:
    ops: [matmul]
    dtypes: [f32]
    template: mine.mlir.j2
    knobs: {tile_m: [4]}
"""


def choices_of(entry: StrategyEntry) -> dict[str, object]:
    return {knob.name: knob.choices for knob in entry.knobs}


def read(text: str, folder: Path) -> SpaceFile:
    path = folder / "mine.yaml"
    path.write_text(text)
    return load_space_file(path)


def test_a_new_strategy_comes_before_the_shipped_ones(tmp_path: Path) -> None:
    file = read(f"extends: default\nstrategies:{MINE}", tmp_path)
    mine, *known = ((each.name, dict(choices_of(each))) for each in file.strategies)
    assert mine[0] == "mine"
    assert known == [(each.name, dict(choices_of(each))) for each in SHIPPED.strategies]
    assert file.script("mine") == tmp_path / "mine.mlir.j2"


def test_what_is_given_for_a_known_strategy_takes_the_place_of_what_is_shipped(tmp_path: Path) -> None:
    change = "  matmul_cpu_packed: {dtypes: [f64], knobs: {tile_m: [2, 3]}}\n"
    changed = read(f"extends: default\nstrategies:\n{change}", tmp_path).strategy("matmul_cpu_packed")
    shipped = SHIPPED.strategy("matmul_cpu_packed")
    assert changed.dtypes == ("f64",)
    assert choices_of(changed) == choices_of(shipped) | {"tile_m": (2, 3)}
    assert [each.text for each in changed.constraints] == [each.text for each in shipped.constraints]
    assert changed.first == shipped.first
    change = "  matmul_gpu_simt: {let: {blocks_m: m // block_m, mine: 2 * blocks_m}}\n"
    changed = read(f"extends: default\nstrategies:\n{change}", tmp_path).strategy("matmul_gpu_simt")
    names = {each.name: each.expression.text for each in SHIPPED.strategy("matmul_gpu_simt").let}
    names |= {"blocks_m": "m // block_m", "mine": "2 * blocks_m"}
    assert {each.name: each.expression.text for each in changed.let} == names
    (limit,) = (each for each in changed.constraints if each.text == "blocks_m <= 65535")
    assert limit.full_text == "m // block_m <= 65535"


@pytest.mark.slow
def test_the_text_of_a_run_is_whole_and_reads_back_without_the_shipped_file(tmp_path: Path) -> None:
    file = read(f"extends: default\nstrategies:{MINE}", tmp_path)
    assert "extends" not in file.text
    assert parse_space(file.text, file.name, file.folder) == file
    alone = f"strategies:  # mine alone{MINE}"
    assert read(alone, tmp_path).text == alone  # as it was written


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("extended", "strategies", "message"),
    [
        ("other.yaml", "{}", r"^mine\.yaml: extends: found 'other\.yaml', allowed default$"),
        ("default", "", r"^mine\.yaml: strategies: is missing; it has no default$"),
        ("default", "7", r"^mine\.yaml: strategies: found 7, allowed a mapping"),
        ("default", "{matmul_cpu_dot: 7}", r"strategies\.matmul_cpu_dot: found 7, allowed"),
        ("default", "{matmul_cpu_dot: {knobs: 7}}", r"matmul_cpu_dot\.knobs: found 7, allowed a mapping"),
        ("default", "{matmul_cpu_dot: {let: 7}}", r"matmul_cpu_dot\.let: found 7, allowed a mapping"),
        (
            "default",
            "{matmul_cpu_dott: {knobs: {tile_m: [2]}}}",
            r"strategies: found 'matmul_cpu_dott', .*, or a new one with ops; .* matmul_cpu_dot\?$",
        ),
        (
            "default",
            "{matmul_cpu_packed: {knobs: {tile_mm: [2]}}}",
            r"strategies\.matmul_cpu_packed\.knobs: found 'tile_mm', .*; did you mean tile_m\?$",
        ),
    ],
)
def test_what_is_wrong_has_its_key(extended: str, strategies: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        read(f"extends: {extended}" + f"\nstrategies: {strategies}" * bool(strategies), tmp_path)


LINES = default_space_file().read_text().splitlines()
LINE_LIMIT = 140  # characters


def test_the_lines_of_the_shipped_file_are_short_with_a_comment_for_each_knob_and_no_unused_name() -> None:
    assert [number for number, line in enumerate(LINES, 1) if len(line) > LINE_LIMIT] == []
    knobs = sum(len(entry.knobs) for entry in SHIPPED.strategies)
    commented = re.compile(r"      \w+: (\[.+\]|\{.+\}) +# \S.+")
    assert sum(commented.fullmatch(line) is not None for line in LINES) == knobs
    for entry in SHIPPED.strategies:
        texts = [each.text for each in (*entry.constraints, *entry.preferences)]
        texts += [each.expression.text for each in entry.let]
        for derived in entry.let:
            assert any(re.search(rf"\b{derived.name}\b", text) for text in texts), derived.name


def test_plain_yaml_is_read_and_an_empty_text_is_nothing() -> None:
    assert yaml.load("a: [1, x]\nb: {c: 2.5}\n", "f.yaml") == {"a": [1, "x"], "b": {"c": 2.5}}
    assert yaml.load("", "f.yaml") is None


LAUGHS = (f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30))
BILLION_LAUGHS = "\n".join(["a0: &a0 [ha]", *LAUGHS])


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2", r"f\.yaml: line 2, column [12]: found no YAML \(.*expected ',' or ']'"),
        ("a: 1\na: 2", r"f\.yaml: line 2: the key 'a' is given twice"),
        ("x:\n  b: 1\n  c: {b: 1, b: 2}", r"f\.yaml: line 3: the key 'b' is given twice"),
        ("x: [{b: 1, b: 2}]", r"f\.yaml: line 1: the key 'b' is given twice"),
        ("a: &x [1]\nb: *x", r"f\.yaml: line 2: the alias \*x is not supported; write the values out"),
        ("? [1, 2]\n: 3", "a key is a list or a mapping, not text"),
        ("--- 1\n--- 2", "line 2: has a second document"),
        ("[" * 10_000, "line 1: found deeper nesting, allowed 20 levels"),
        ("- " * 10_000, "line 1: found deeper nesting, allowed 20 levels"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a: 2001-99-99", r"found no YAML \(month must be in 1\.\.12"),
        ("a: " + "9" * 5000, "found no YAML .*4300 digits"),
        ("a:\n  !!bool maybe", "line 2: found 'maybe', allowed what is a !!bool in YAML"),
        ("a: !!int ''", "line 1: found '', allowed what is a !!int in YAML"),
        ("[!!float '']", "line 1: found '', allowed what is a !!float in YAML"),
        ("!!timestamp x: 1", "line 1: found 'x', allowed what is a !!timestamp in YAML"),
        ("1: a\n0x1: b", r"f\.yaml: line 2: the key '0x1' is given twice"),
        ("yes: a\ntrue: b", r"f\.yaml: line 2: the key 'true' is given twice"),
        ("a: \0", "found no YAML .*character"),
        ("x" * 1_000_001, "found 1000001 characters, allowed 1000000"),
        (BILLION_LAUGHS, "line 2: the alias"),
    ],
)
def test_a_trap_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        yaml.load(text, "f.yaml")


HEAD = "strategies:\n  s:\n    ops: [matmul]\n    dtypes: [f32]\n"


def entries_of(text: str) -> tuple[StrategyEntry, ...]:
    return reading.entries(yaml.load(text, "f.yaml"), "f.yaml")


def knob(form: str) -> object:
    (entry,) = entries_of(f"{HEAD}    knobs:\n      t: {form}\n")
    return entry.knobs[0].choices


def test_what_is_left_out_means_all_and_everything_that_is_given_is_kept() -> None:
    (entry,) = entries_of(HEAD)
    layouts, epilogues, isas = ("nn", "nt", "tn"), tuple(EPILOGUES), ("avx512", "avx2", "neon", "none")
    assert entry == StrategyEntry("s", ("matmul",), ("f32",), layouts, epilogues, isas, (), (), ())
    (entry,) = entries_of(
        HEAD
        + """\
    layouts: [nt]
    epilogues: [none]
    isas: [avx2]
    template: mine.mlir
    description: For squares.
    knobs: {a: [1, 2], b: ["x"]}
    constraints: ["a < m", "b == 'x'"]
    preferences: ["a == 2"]
    projection: {a: 1, b: "y"}
    first: [{b: x, a: 2}]
"""
    )
    assert (entry.layouts, entry.epilogues, entry.isas) == (("nt",), ("none",), ("avx2",))
    assert (entry.template, entry.description) == ("mine.mlir", "For squares.")
    assert [each.name for each in entry.knobs] == ["a", "b"]
    assert [each.text for each in entry.constraints] == ["a < m", "b == 'x'"]
    assert entry.constraints[1].where == "f.yaml: strategies.s.constraints[1]"
    (preference,) = entry.preferences
    assert (preference.text, preference.where) == ("a == 2", "f.yaml: strategies.s.preferences[0]")
    assert entry.projection == (("a", 1), ("b", "y"))
    assert entry.first == (("", Candidate.of("s", {"a": 2, "b": "x"})),)


@pytest.mark.parametrize(
    ("form", "choices"),
    [
        ("[4, 6, 8]", (4, 6, 8)),
        ("[mn, nm]", ("mn", "nm")),
        ("[4, 6, 4, 8, 6]", (4, 6, 8)),
        ("['m', 'n * 2']", ("m", "n * 2")),
        ("{range: [16, 64], step: 16}", (16, 32, 48, 64)),
        ("{range: [16, 63], step: 16}", (16, 32, 48)),
        ("{range: [-1, 1]}", (-1, 0, 1)),
        ("{range: [5, 5]}", (5,)),
        ("{powers: [16, 64]}", (16, 32, 64)),
        ("{powers: [1, 30], base: 3}", (1, 3, 9, 27)),
        ("{powers: [15, 65], base: 2}", (16, 32, 64)),
        ("{divisors_of: k, min: 4, max: 64, extra: [7]}", Divisors(parse("k", "f"), 4, 64, (7,))),
    ],
)
def test_a_knob_form_gives_its_choices_and_divisors_wait_for_the_problem(form: str, choices: object) -> None:
    assert knob(form) == choices


WRONG_FILES = [
    ("", "found nothing, allowed a mapping (key: value)"),
    ("[]", "found [], allowed a mapping (key: value)"),
    ("strategies: {}", "strategies: found {}, allowed at least 1 of them"),
    ("strategys: {}", "strategys: found the key 'strategys', allowed strategies, extends (and 1 more)"),
    ("strategies: {s: 1}", "strategies.s: found 1, allowed a mapping (key: value)"),
    ("strategies: {s-1: {}}", "strategies.s-1: found 's-1', allowed letters, digits and _"),
    ("strategies: {s: {ops: [matmul]}}", "strategies.s.dtypes: is missing; it has no default"),
    ("strategies: {s: {ops: [conv], dtypes: [f32]}}", "strategies.s.ops[0]: found 'conv', allowed matmul"),
]
WRONG_LINES = [
    ("isas: [avx2, sse]", "isas[1]: found 'sse', allowed avx512, avx2, neon, none, ptx"),
    ("layouts: []", "layouts: found [], allowed at least 1 of them"),
    ("constraint: [a]", "constraint: found the key 'constraint', allowed ops, dtypes"),
    ("constraints: true", "constraints: found True, allowed a list"),
    ("constraints: [a b]", "constraints[0]: 'a b' is not an expression"),
    ("""constraints: ["__import__('os')"]""", """constraints[0]: found "__import__('os')", allowed names"""),
    ("knobs: {t: [1]}\n    first: [{u: 1}]", "first[0]: gives u; must give each knob: t"),
    (
        "first: [{a: 8 // k, b: x}]",
        "first[0].a: found '8 // k', allowed an integer, as the knob's choices are",
    ),
    ("first: [{a: 1, b: [x, 2]}]", "first[0].b: found 2, allowed a text"),
    ("projection: {c: 1}", "projection: knob: found 'c', allowed a, b"),
    ("projection: {a: x}", "projection.a: found 'x', allowed an integer"),
    ("projection: {b: 1}", "projection.b: found 1, allowed a text"),
    ("projection: [a]", "projection: found ['a'], allowed a mapping"),
    ("usual: {c: 1}", "usual: knob: found 'c', allowed a, b"),
    ("usual: {b: 1}", "usual.b: found 1, allowed a text"),
    ("usual: {a: [1]}", "usual.a: found [1], allowed an integer or a text"),
    ("first: [{a: 1.5, b: x}]", "first[0].a: found 1.5, allowed an integer or a text (in quotes"),
    ("first: [{a: [1, on], b: x}]", "first[0].a[1]: found True, allowed an integer or a text"),
    ("projection: {a: 1.5}", "projection.a: found 1.5, allowed an integer or a text"),
]
WRONG_KNOBS = [
    ("8", "t: found 8, allowed a list of integers or of texts, {range:"),
    ("{}", "t: found {}, allowed a list of integers"),
    ("[]", "t: found [], allowed at least 1 of them"),
    ("[1, x]", "t: found [1, 'x'], allowed all integers or all texts"),
    ("[1, 2.5]", "t[1]: found 2.5, allowed an integer or a text"),
    ("[on]", "t[0]: found True, allowed an integer or a text (in quotes"),
    ("[[1]]", "t[0]: found [1], allowed an integer or a text"),
    ("{range: [1, 2, 3]}", "t.range: found [1, 2, 3], allowed a list of 2"),
    ("{range: [1, x]}", "t.range[1]: found 'x', allowed a whole number"),
    ("{range: [9, 1]}", "t: found {'range': [9, 1]}, allowed lo <= hi with at most 4096"),
    ("{range: [1, 99999999999]}", "t: found {'range': [1, 99999999999]}, allowed lo <= hi"),
    ("{range: [1, 5], step: 0}", "t.step: found 0, allowed 1 or more"),
    ("{range: [1, 5], stp: 2}", "t.stp: found the key 'stp', allowed range, step"),
    ("{powers: [3, 3]}", "t: found {'powers': [3, 3]}, allowed 1 <= lo <= hi with a power of 2"),
    ("{powers: [0, 8]}", "t: found {'powers': [0, 8]}, allowed 1 <= lo"),
    ("{powers: [1, 8], base: 1}", "t.base: found 1, allowed 2 or more"),
    ("{divisors_of: 8}", "t.divisors_of: found 8, allowed text"),
    ("{divisors_of: k, mn: 8}", "t.mn: found the key 'mn', allowed divisors_of, min, max, extra"),
    ("{divisors_of: k, min: 0}", "t.min: found 0, allowed 1 or more"),
    ("{divisors_of: 'k.real'}", "t.divisors_of: found 'k.real', allowed names"),
]
A_AND_B = "    knobs: {a: [1, 2], b: [x]}\n"
WRONG = [
    *WRONG_FILES,
    *(
        (f"{HEAD}{A_AND_B * ('knobs' not in line)}    {line}\n", f"strategies.s.{found}")
        for line, found in WRONG_LINES
    ),
    *((f"{HEAD}    knobs:\n      t: {form}\n", f"strategies.s.knobs.{found}") for form, found in WRONG_KNOBS),
]


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_wrong_is_reported_with_its_key_path(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"f.yaml: {message}")):
        entries_of(text)


def test_further_problems_are_counted() -> None:
    message = f"found 'f8', allowed {', '.join(INPUT_DTYPES)} (and 2 more)"
    with pytest.raises(UsageError, match=re.escape(message)):
        entries_of("strategies: {s: {ops: [matmul], dtypes: [f8, f9], layouts: [xx]}}")


VARIABLES = (("m", 64), ("input_bytes", 4))
KNOBS_HEAD = f"{HEAD}    knobs: {{a: [1, 2, 4], b: [1, 2, 4], order: [x, y]}}\n"


def derived(rest: str) -> StrategyEntry:
    (entry,) = entries_of(f"{KNOBS_HEAD}{rest}")
    return entry


def test_derived_names_mean_what_they_stand_for_in_constraints_preferences_and_each_other() -> None:
    short = derived("""\
    let:
      cost: "threads * input_bytes if order == 'x' else row"
      threads: "a * (b + 1)"
      row: "m // a"
    constraints: ["cost <= 40", "m - threads > 56", "row != 16"]
    preferences: ["min(threads, 4) == threads"]
""")
    long = derived("""\
    constraints:
      - "((a * (b + 1)) * input_bytes if order == 'x' else (m // a)) <= 40"
      - "m - (a * (b + 1)) > 56"
      - "(m // a) != 16"
    preferences: ["min((a * (b + 1)), 4) == (a * (b + 1))"]
""")
    sets = [FeasibleSet.of((entry.space(VARIABLES),)) for entry in (short, long)]
    assert [each.total for each in sets] == [7, 7]
    assert [sets[0].candidate(row) for row in range(7)] == [sets[1].candidate(row) for row in range(7)]
    assert sets[0].is_preferred.tolist() == sets[1].is_preferred.tolist()
    assert list(sets[0].rejected().values()) == list(sets[1].rejected().values())


def test_an_expression_keeps_its_text_and_a_derived_name_may_be_that_of_a_function_or_unused() -> None:
    entry = derived("    let: {both: a + b, twice: 2 * both}\n    constraints: [m % twice == 0, a < b]")
    constraint, plain = entry.constraints
    assert (constraint.text, constraint.full_text) == ("m % twice == 0", "m % (2 * (a + b)) == 0")
    assert constraint.names == {"m", "a", "b"}
    assert (plain.text, plain.full_text) == ("a < b", "a < b")
    (constraint,) = derived("    let: {min: a + 1}\n    constraints: ['min(min, b) == 2']").constraints
    assert constraint.full_text == "min(a + 1, b) == 2"
    unused, bare = (derived(f"{let}    constraints: [a < b]") for let in ("    let: {unused: a + 1}\n", ""))
    assert unused.space(VARIABLES).constraints == bare.space(VARIABLES).constraints


@pytest.mark.parametrize(
    ("let", "message"),
    [
        ("{c: 5}", "s.let.c: found 5, allowed text"),
        ("[c]", "s.let: found ['c'], allowed a mapping (key: value)"),
        ("{c-d: a}", "s.let.c-d: found 'c-d', allowed letters, digits and _, no digit first"),
        ("{c: a b}", "s.let.c: 'a b' is not an expression"),
        ("{a: b + 1}", "s.let.a: 'a' is the name of a knob too: give it another name"),
        ("{c: c + 1}", "s.let.c: derived names form a cycle: c -> c"),
        ("{c: d + a, d: e, e: 2 * c}", "s.let.c: derived names form a cycle: c -> d -> e -> c"),
    ],
)
def test_wrong_derived_names_are_reported_when_the_file_is_read(let: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(f'f.yaml: strategies.{message}')}") as raised:
        derived(f"    let: {let}\n")
    assert "\n" not in str(raised.value)


KNOWN = "known: a, b, c, input_bytes, m, order"
WRONG_NAMES = [
    ("let: {c: a + aa}\n    constraints: [c < 5]", f"s.let.c: 'a + aa': unknown name 'aa', {KNOWN}"),
    ("let: {c: a + 1}\n    constraints: [cc < 5]", f"s.constraints[0]: 'cc < 5': unknown name 'cc', {KNOWN}"),
    ("let: {m: a + 1}", "s.let.m: 'm' is the name of a variable too: give it another name"),
    ("let: {of_script: a}", "s.let.of_script: 'of_script' is the name of a knob too: give it another"),
]


@pytest.mark.parametrize(("rest", "message"), WRONG_NAMES)
def test_wrong_names_are_reported_when_problem_and_script_are_known(rest: str, message: str) -> None:
    knobs = (Knob("of_script", (1,)),) if "of_script" in rest else ()
    with pytest.raises(UsageError, match=f"^{re.escape(f'f.yaml: strategies.{message}')}"):
        derived(f"    {rest}").space(VARIABLES, knobs)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["d0: a + b", *(f"d{n}: d{n - 1} + d{n - 1}" for n in range(1, 30))],
            r"d8: .*: found 2048 parts .* 2000$",
        ),
        (["c0: -a", *(f"c{n}: -c{n - 1}" for n in range(1, 50))], r"c\d\d: found an expression nested"),
    ],
    ids=["large", "deep"],
)
def test_an_expression_that_becomes_too_large_or_deep_is_refused(names: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=rf"^f\.yaml: strategies\.s\.let\.{message}"):
        derived("    let:\n" + "".join(f"      {name}\n" for name in names))
