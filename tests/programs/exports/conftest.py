"""Which exports are compiled: the usual ones, or with ``--all-exports`` every one of the corpus."""

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives a test its exports: ``export_name`` for the host, ``simulated_name`` for the simulated GPU."""
    wanted = {"export_name", "simulated_name"} & set(metafunc.fixturenames)
    if not wanted:
        return
    from tests.programs.exports import corpus

    takes_all = metafunc.config.getoption("--all-exports")
    if "export_name" in wanted:
        metafunc.parametrize("export_name", corpus.EXPORTS if takes_all else corpus.USUAL)
    else:
        names = [name for name in corpus.EXPORTS if name not in corpus.NOT_SIMULATED]
        metafunc.parametrize("simulated_name", names if takes_all else corpus.SIMULATED)
