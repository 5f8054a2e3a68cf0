"""Steps of a process: named until they end, by an error too; then the step around is named again."""

import pytest

from tuner.core import progress


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(progress, "_reader", names.append)
    return names


def test_the_outer_step_goes_on_where_an_inner_one_ends(named: list[str]) -> None:
    with progress.step("the transform interpreter"):
        progress.enter_step("transform.structured.pad at script:6:5")
        with progress.step("pass cse"):
            pass
    assert named == [
        "the transform interpreter",
        "transform.structured.pad at script:6:5",
        "pass cse",
        "transform.structured.pad at script:6:5",
        "",
    ]


def test_a_step_that_raises_is_over(named: list[str]) -> None:
    with pytest.raises(ValueError, match="wrong"), progress.step("the kernel"):
        raise ValueError("wrong")
    assert named == ["the kernel", ""]


def test_code_generation_says_how_long_the_code_is(named: list[str]) -> None:
    with progress.code_generation("llvm.return\n" * 48_000):
        pass
    assert named[0] == "LLVM code generation of 48,000 lines"
