"""Examples of help stand there as lines that can be copied."""

from tests.cli.test_main import help_of
from tests.docs.test_examples import EXAMPLES
from tuner.cli import main


def test_every_example_can_be_copied() -> None:
    examples = [each for each in EXAMPLES if each.place.endswith(" --help")]
    assert len(examples) > len(main.all_commands())
    for example in examples:
        text = help_of(tuple(example.place.split()[:-1])).replace("\\\n", " ").replace("'", "")
        lines = [" ".join(line.split()).removeprefix("Example: ") for line in text.splitlines()]
        assert f"tuner {' '.join(example.words)}" in lines, example
