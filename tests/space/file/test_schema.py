import re

import pytest

from tests.default_suite import ALL
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file import reading, yaml
from tuner.space.file.entries import Divisors, StrategyEntry
from tuner.space.search_space import Knob

HEAD = "strategies:\n  s:\n    ops: [matmul]\n    dtypes: [f32]\n"


def read(text: str) -> tuple[StrategyEntry, ...]:
    return reading.entries(yaml.load(text, "f.yaml"), "f.yaml")


def knob(form: str) -> object:
    (entry,) = read(f"{HEAD}    knobs:\n      t: {form}\n")
    return entry.knobs[0].choices


def test_what_is_left_out_means_all_and_everything_that_is_given_is_kept() -> None:
    (entry,) = read(HEAD)
    layouts, epilogues, isas = ("nn", "nt", "tn"), ("none", "bias_relu"), ("avx512", "avx2", "none")
    assert entry == StrategyEntry("s", ("matmul",), ("f32",), layouts, epilogues, isas, (), (), ())
    (entry,) = read(
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
    assert entry.first == (Candidate.of("s", {"a": 2, "b": "x"}),)


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
    ("", "the file: found nothing, allowed a mapping (key: value)"),
    ("[]", "the file: found [], allowed a mapping (key: value)"),
    ("strategies: {}", "strategies: found {}, allowed at least 1 of them"),
    ("strategys: {}", "strategys: found the key 'strategys', allowed extends, strategies (and 1 more)"),
    ("strategies: {s: 1}", "strategies.s: found 1, allowed a mapping (key: value)"),
    ("strategies: {s-1: {}}", "strategies.s-1: found 's-1', allowed letters, digits and _"),
    ("strategies: {s: {ops: [matmul]}}", "strategies.s.dtypes: is missing; it has no default"),
    ("strategies: {s: {ops: [conv], dtypes: [f32]}}", "strategies.s.ops[0]: found 'conv', allowed matmul"),
]
WRONG_LINES = [
    ("isas: [avx2, sse]", "isas[1]: found 'sse', allowed avx512, avx2, none, ptx"),
    ("layouts: []", "layouts: found [], allowed at least 1 of them"),
    ("constraint: [a]", "constraint: found the key 'constraint', allowed ops, dtypes"),
    ("constraints: true", "constraints: found True, allowed a valid list"),
    ("constraints: [a b]", "constraints[0]: 'a b' is not an expression"),
    ("""constraints: ["__import__('os')"]""", """constraints[0]: found "__import__('os')", allowed names"""),
    ("knobs: {t: [1]}\n    first: [{u: 1}]", "first[0]: gives u; must give each knob: t"),
    ("projection: {c: 1}", "projection: knob: found 'c', allowed a, b"),
    ("projection: {a: x}", "projection.a: found 'x', allowed an integer"),
    ("projection: {b: 1}", "projection.b: found 1, allowed a text"),
    ("projection: [a]", "projection: found ['a'], allowed a mapping"),
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
    ("{range: [1, 2, 3]}", "t.range: found [1, 2, 3], allowed at most 2 of them"),
    ("{range: [1, x]}", "t.range[1]: found 'x', allowed a valid integer"),
    ("{range: [9, 1]}", "t: found {'range': [9, 1]}, allowed lo <= hi with at most 4096"),
    ("{range: [1, 99999999999]}", "t: found {'range': [1, 99999999999]}, allowed lo <= hi"),
    ("{range: [1, 5], step: 0}", "t.step: found 0, allowed greater than or equal to 1"),
    ("{range: [1, 5], stp: 2}", "t.stp: found the key 'stp', allowed range, step"),
    ("{powers: [3, 3]}", "t: found {'powers': [3, 3]}, allowed 1 <= lo <= hi with a power of 2"),
    ("{powers: [0, 8]}", "t: found {'powers': [0, 8]}, allowed 1 <= lo"),
    ("{powers: [1, 8], base: 1}", "t.base: found 1, allowed greater than or equal to 2"),
    ("{divisors_of: 8}", "t.divisors_of: found 8, allowed a valid string"),
    ("{divisors_of: k, mn: 8}", "t.mn: found the key 'mn', allowed divisors_of, min, max, extra"),
    ("{divisors_of: k, min: 0}", "t.min: found 0, allowed greater than or equal to 1"),
    ("{divisors_of: 'k.real'}", "t.divisors_of: found 'k.real', allowed names"),
]
A_AND_B = "    knobs: {a: [1, 2], b: [x]}\n"
WRONG = [
    *WRONG_FILES,
    *(
        (f"{HEAD}{A_AND_B * ('projection' in line)}    {line}\n", f"strategies.s.{found}")
        for line, found in WRONG_LINES
    ),
    *((f"{HEAD}    knobs:\n      t: {form}\n", f"strategies.s.knobs.{found}") for form, found in WRONG_KNOBS),
]


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_wrong_is_reported_with_its_key_path(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"f.yaml: {message}")):
        read(text)


def test_further_problems_are_counted() -> None:
    message = "found 'f8', allowed f32, f64, bf16, f16, tf32, i8, e4m3, e5m2 (and 2 more)"
    with pytest.raises(UsageError, match=re.escape(message)):
        read("strategies: {s: {ops: [matmul], dtypes: [f8, f9], layouts: [xx]}}")


VARIABLES = (("m", 64), ("input_bytes", 4))
KNOBS_HEAD = f"{HEAD}    knobs: {{a: [1, 2, 4], b: [1, 2, 4], order: [x, y]}}\n"


def derived(rest: str) -> StrategyEntry:
    (entry,) = read(f"{KNOBS_HEAD}{rest}")
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
        ("{c: 5}", "s.let.c: found 5, allowed a valid string"),
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
