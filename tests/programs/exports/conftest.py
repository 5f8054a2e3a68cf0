"""Which exports are compiled: the usual ones, or with ``--all-exports`` every one of the corpus."""

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives a test its exports.

    ``export_name`` for the host, ``whole_name`` for the host without fusions, ``simulated_name`` for the
    simulated GPU, ``simulated_whole_name`` for the simulated GPU without fusions.
    """
    names = {"export_name", "whole_name", "simulated_name", "simulated_whole_name"}
    wanted = names & set(metafunc.fixturenames)
    if not wanted:
        return
    from tests.programs.exports import corpus

    usual = {
        "export_name": corpus.USUAL,
        "whole_name": corpus.WHOLE,
        "simulated_name": corpus.SIMULATED,
        "simulated_whole_name": corpus.SIMULATED_WHOLE,
    }
    every = {name: tuple(corpus.EXPORTS) for name in usual}
    simulated = tuple(name for name in corpus.EXPORTS if name not in corpus.NOT_SIMULATED)
    every |= dict.fromkeys(("simulated_name", "simulated_whole_name"), simulated)
    chosen = every if metafunc.config.getoption("--all-exports") else usual
    for name in wanted:
        metafunc.parametrize(name, chosen[name])
