from dataclasses import replace
from pathlib import Path

import pytest

from tests.library.dispatch.rules import rule_of, space
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.library.dispatch.rule import parse_rule, read_rule, rule_text

PROBLEMS = {Matmul(8, 64, 64): (2e-6, 1e-6), Matmul(32, 64, 64, dtype="f64", layout="nt"): (1e-6, 2e-6)}
RULE = rule_of(PROBLEMS)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mm.rule.yaml"
    path.write_text(text)
    return path


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_rule(written(tmp_path, rule_text(RULE)), space()) == RULE


def test_a_file_is_yaml_that_a_person_can_read() -> None:
    text = rule_text(RULE)
    assert text.startswith("format: tuner-rule\nversion: 1\nsha256: ")
    assert "strategy: matmul_cpu_direct" in text
    assert "held_out_geomean: 0.95" in text
    assert max(map(len, text.splitlines())) <= 250


@pytest.mark.parametrize(
    "changed",
    [
        rule_text(RULE)[:-40],
        rule_text(RULE).replace("tile_m: 8", "tile_m: 4"),
        rule_text(RULE) + "more: 1\n",
        "format: tuner-rule\nversion: 1\n",
    ],
    ids=["cut off", "a value", "a line", "head alone"],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, changed: str) -> None:
    with pytest.raises(UsageError, match="damaged or was changed") as caught:
        read_rule(written(tmp_path, changed), space())
    assert "\n" not in caught.value.message
    assert caught.value.hint.startswith("tuner distill")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found format '', allowed 'tuner-rule'"),
        ("strategies: {}\n", "found format 'strategies: {}', allowed 'tuner-rule'"),
        (rule_text(RULE).replace("version: 1", "version: 2", 1), "found version 2 of tuner-rule, allowed 1"),
        (rule_text(RULE).replace("version: 1", "version: one", 1), "found version 'one'"),
    ],
)
def test_another_file_and_another_version_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_rule(text, "mm.rule.yaml")


def test_a_file_of_another_machine_is_refused(tmp_path: Path) -> None:
    other = replace(RULE, machine="Xeon (family 6 model 1, avx2, caches 32K/1M/8M)")
    with pytest.raises(UsageError, match=r"was measured on 'Xeon .*', this machine is"):
        read_rule(written(tmp_path, rule_text(other)), space())


def test_a_file_of_another_search_space_is_refused(tmp_path: Path) -> None:
    other = replace(RULE, space_sha256="0" * 64)
    with pytest.raises(UsageError, match="belongs to another search space"):
        read_rule(written(tmp_path, rule_text(other)), space())
    configurations = tuple(replace(each, strategy="mine") for each in RULE.configurations)
    unknown = replace(RULE, configurations=configurations[:1], problems=())
    with pytest.raises(UsageError, match="belongs to another search space"):
        read_rule(written(tmp_path, rule_text(unknown)), space())


def test_a_file_of_another_number_of_threads_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="was measured with threads=1, not with 2"):
        read_rule(written(tmp_path, rule_text(RULE)), space(2))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"mm\.rule\.yaml: cannot be read"):
        read_rule(tmp_path / "mm.rule.yaml", space())


def test_a_wrong_value_is_named_with_its_place() -> None:
    broken = replace(RULE, problems=(replace(RULE.problems[0], rounds_s=((-1.0,), ())),))
    with pytest.raises(UsageError, match=r"problems\[0\]\.rounds_s\[0\]\[0\]: found -1\.0, allowed seconds"):
        parse_rule(rule_text(broken), "mm.rule.yaml")
