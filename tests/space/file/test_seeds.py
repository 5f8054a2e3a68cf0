"""Files of configurations to try first."""

from pathlib import Path

import pytest

from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.space.file.seeds import read_seeds

ONE = '{"strategy": "s", "knobs": {"x": 1, "order": "ij"}, "from": "a colleague"}'


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "seeds.jsonl"
    file.write_text(text)
    return file


def test_lines_are_configurations_in_order_and_other_keys_are_left_unread(tmp_path: Path) -> None:
    text = f'{ONE}\n\n{{"strategy": "t", "knobs": {{}}}}\n'
    assert read_seeds(written(tmp_path, text)) == (
        Candidate.of("s", {"x": 1, "order": "ij"}),
        Candidate.of("t", {}),
    )


def test_a_script_is_a_file_next_to_the_seeds(tmp_path: Path) -> None:
    text = f'{{"script": "mine/best.mlir"}}\n{ONE}\n{{"script": "/other.mlir", "from": "an agent"}}'
    best, configuration, other = read_seeds(written(tmp_path, text))
    assert (best, other) == (tmp_path / "mine" / "best.mlir", Path("/other.mlir"))
    assert isinstance(configuration, Candidate)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"script": 1}', "line 2: found another form"),
        ('{"script": "a.mlir", "strategy": "s"}', "line 2: found another form"),
        ("{", "line 2: is not JSON"),
        ("[1]", 'line 2: found another form, allowed {"strategy": NAME'),
        ('{"strategy": "s"}', "line 2: found another form"),
        ('{"strategy": 1, "knobs": {}}', "line 2: found another form"),
        (
            '{"strategy": "s", "knobs": {"x": 1.5}}',
            "line 2: knob x: found 1.5, allowed whole numbers and texts",
        ),
        ('{"strategy": "s", "knobs": {"x": true}}', "line 2: knob x: found True"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    with pytest.raises(UsageError, match=r"seeds\.jsonl, ") as raised:
        read_seeds(written(tmp_path, f"{ONE}\n{line}\n"))
    assert reason in str(raised.value)


def test_an_empty_file_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="found no line"):
        read_seeds(written(tmp_path, "\n"))
    with pytest.raises(UsageError, match="cannot be read"):
        read_seeds(tmp_path / "gone.jsonl")
