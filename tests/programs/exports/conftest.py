"""Which exports are compiled: the usual ones, or with ``--all-exports`` every one of the corpus."""

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives a test its exports.

    ``export_name`` for the host, ``whole_name`` for the host without groups, ``simulated_name`` for the
    simulated GPU.
    """
    wanted = {"export_name", "whole_name", "simulated_name"} & set(metafunc.fixturenames)
    if not wanted:
        return
    from tests.programs.exports import corpus

    usual = {"export_name": corpus.USUAL, "whole_name": corpus.WHOLE, "simulated_name": corpus.SIMULATED}
    every = {name: tuple(corpus.EXPORTS) for name in usual}
    every["simulated_name"] = tuple(name for name in corpus.EXPORTS if name not in corpus.NOT_SIMULATED)
    chosen = every if metafunc.config.getoption("--all-exports") else usual
    for name in wanted:
        metafunc.parametrize(name, chosen[name])
