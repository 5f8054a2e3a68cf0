import re

import pytest

from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.space.file import schema, yaml
from tuner.space.file.entries import Divisors, StrategyEntry

HEAD = "strategies:\n  s:\n    ops: [matmul]\n    dtypes: [f32]\n"


def read(text: str) -> tuple[StrategyEntry, ...]:
    return schema.entries(yaml.load(text, "f.yaml"), "f.yaml")


def knob(form: str) -> object:
    (entry,) = read(f"{HEAD}    knobs:\n      t: {form}\n")
    return entry.knobs[0].choices


def test_what_is_left_out_means_all() -> None:
    (entry,) = read(HEAD)
    assert entry == StrategyEntry(
        "s",
        ("matmul",),
        ("f32",),
        ("nn", "nt", "tn"),
        ("none", "bias_relu"),
        ("avx512", "avx2", "none"),
        (),
        (),
        (),
    )


def test_everything_that_is_given_is_kept() -> None:
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
    assert [(each.text, each.where) for each in entry.preferences] == [
        ("a == 2", "f.yaml: strategies.s.preferences[0]")
    ]
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
    ],
)
def test_a_knob_form_gives_its_choices(form: str, choices: tuple[int | str, ...]) -> None:
    assert knob(form) == choices


def test_divisors_wait_for_the_problem() -> None:
    divisors = knob("{divisors_of: k, min: 4, max: 64, extra: [7]}")
    assert isinstance(divisors, Divisors)
    assert (divisors.of.text, divisors.min, divisors.max, divisors.extra) == ("k", 4, 64, (7,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file: found nothing, allowed a mapping (key: value)"),
        ("[]", "the file: found [], allowed a mapping (key: value)"),
        ("strategies: {}", "strategies: found {}, allowed at least 1 of them"),
        ("strategys: {}", "strategys: found the key 'strategys', allowed extends, strategies (and 1 more)"),
        ("strategies: {s: 1}", "strategies.s: found 1, allowed a mapping (key: value)"),
        ("strategies: {s-1: {}}", "strategies.s-1: found 's-1', allowed letters, digits and _"),
        ("strategies: {s: {ops: [matmul]}}", "strategies.s.dtypes: is missing; it has no default"),
        (
            "strategies: {s: {ops: [conv], dtypes: [f32]}}",
            "strategies.s.ops[0]: found 'conv', allowed matmul",
        ),
        (
            HEAD + "    isas: [avx2, sse]",
            "strategies.s.isas[1]: found 'sse', allowed avx512, avx2, none, ptx",
        ),
        (HEAD + "    layouts: []", "strategies.s.layouts: found [], allowed at least 1 of them"),
        (
            HEAD + "    constraint: [a]",
            "strategies.s.constraint: found the key 'constraint', allowed ops, dtypes",
        ),
        (HEAD + "    constraints: true", "strategies.s.constraints: found True, allowed a valid list"),
        (HEAD + "    constraints: [a b]", "strategies.s.constraints[0]: 'a b' is not an expression"),
        (
            HEAD + """    constraints: ["__import__('os')"]""",
            """strategies.s.constraints[0]: found "__import__('os')", allowed names""",
        ),
        (
            HEAD + "    knobs: {t: [1]}\n    first: [{u: 1}]",
            "strategies.s.first[0]: gives u; must give each knob: t",
        ),
    ],
)
def test_a_wrong_file_is_reported_with_its_key_path(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"f.yaml: {message}")):
        read(text)


@pytest.mark.parametrize(
    ("form", "message"),
    [
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
    ],
)
def test_a_wrong_knob_is_reported_with_its_key_path(form: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"f.yaml: strategies.s.knobs.{message}")):
        knob(form)


def test_further_problems_are_counted() -> None:
    with pytest.raises(
        UsageError,
        match=re.escape("found 'f8', allowed f32, f64, bf16, f16, tf32, i8, e4m3, e5m2 (and 2 more)"),
    ):
        read("strategies: {s: {ops: [matmul], dtypes: [f8, f9], layouts: [xx]}}")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{c: 1}", r"f\.yaml: strategies\.s\.projection: knob: found 'c', allowed a, b"),
        ("{a: x}", r"f\.yaml: strategies\.s\.projection\.a: found 'x', allowed an integer"),
        ("{b: 1}", r"f\.yaml: strategies\.s\.projection\.b: found 1, allowed a text"),
        ("[a]", r"f\.yaml: strategies\.s\.projection: found \['a'\], allowed a mapping"),
        ("{a: 1.5}", r"f\.yaml: strategies\.s\.projection\.a: found 1\.5, allowed an integer or a text"),
    ],
)
def test_a_projection_of_another_knob_or_kind_is_refused(given: str, message: str) -> None:
    knobs = "    knobs: {a: [1, 2], b: [x]}\n"
    with pytest.raises(UsageError, match=message):
        read(f"{HEAD}{knobs}    projection: {given}\n")
