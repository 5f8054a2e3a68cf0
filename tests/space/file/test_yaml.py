import re

import pytest

from tuner.core.errors import UsageError
from tuner.space.file import yaml
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file

LINES = default_space_file().read_text().splitlines()


LONGEST = 140  # characters


def test_no_line_of_the_shipped_file_is_long() -> None:
    assert [number for number, line in enumerate(LINES, 1) if len(line) > LONGEST] == []


def test_every_knob_of_the_shipped_file_has_a_comment() -> None:
    knobs = sum(len(entry.knobs) for entry in load_space_file(default_space_file()).strategies)
    commented = re.compile(r"      \w+: (\[.+\]|\{.+\}) +# \S.+")
    assert sum(commented.fullmatch(line) is not None for line in LINES) == knobs


def test_every_derived_name_of_the_shipped_file_is_used() -> None:
    for entry in load_space_file(default_space_file()).strategies:
        texts = [each.text for each in (*entry.constraints, *entry.preferences)]
        texts += [each.expression.text for each in entry.let]
        for derived in entry.let:
            assert any(re.search(rf"\b{derived.name}\b", text) for text in texts), derived.name


def test_plain_yaml_is_read() -> None:
    assert yaml.load("a: [1, x]\nb: {c: 2.5}\n", "f.yaml") == {"a": [1, "x"], "b": {"c": 2.5}}


def test_an_empty_text_is_nothing() -> None:
    assert yaml.load("", "f.yaml") is None


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
        ("a: 2001-99-99", r"found no YAML \(month must be in 1\.\.12\)"),
        ("a: " + "9" * 5000, "found no YAML .*4300 digits"),
        ("a: \0", "found no YAML .*character"),
        ("x" * 1_000_001, "found 1000001 characters, allowed 1000000"),
    ],
)
def test_a_trap_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        yaml.load(text, "f.yaml")


def test_a_billion_laughs_is_refused_at_once() -> None:
    lines = ["a0: &a0 [ha]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    with pytest.raises(UsageError, match="line 2: the alias"):
        yaml.load("\n".join(lines), "f.yaml")
