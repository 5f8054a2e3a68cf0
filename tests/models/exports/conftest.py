"""Which exports are compiled: the usual ones, or with ``--all-exports`` every one of the corpus."""

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives a test its exports.

    ``export_name`` for the host, ``whole_name`` for the host without fusions, ``simulated_name`` for the
    simulated GPU, ``simulated_whole_name`` for the simulated GPU without fusions.
    """
    names = {"export_name": "USUAL", "whole_name": "WHOLE"}
    names |= {"simulated_name": "SIMULATED", "simulated_whole_name": "SIMULATED_WHOLE"}
    for name in names.keys() & set(metafunc.fixturenames):
        from tests.models.exports import corpus

        left_out = corpus.NOT_SIMULATED if name.startswith("simulated") else ()
        every = [each for each in corpus.EXPORTS if each not in left_out]
        is_every = metafunc.config.getoption("--all-exports")
        metafunc.parametrize(name, every if is_every else getattr(corpus, names[name]))
