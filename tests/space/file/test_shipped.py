import re

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
