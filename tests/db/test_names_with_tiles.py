"""Migration 0019: stored processors with AMX get its words in their names, and are found under them."""

from dataclasses import replace

import pytest
import sqlalchemy as sa
from alembic import command

from tests.db.test_database import config, connected
from tests.db.values import COMPILER, MACHINE, SETTINGS
from tuner.core.machine import Machine, processor_class
from tuner.core.runs import RunQuery, TaskQuery
from tuner.db.store import Store


def machine(*tiles: str, has_vnni: bool = True) -> Machine:
    words = ("avx512", "bf16", *["vnni"] * has_vnni, *tiles)
    return replace(
        MACHINE,
        name=processor_class("Xeon", "family 6 model 207", words, (48 << 10, 2 << 20, 105 << 20)),
        has_vnni=has_vnni,
        has_amx_bf16="amx_bf16" in tiles,
        has_amx_int8="amx_int8" in tiles,
    )


MACHINES = (machine("amx_bf16", "amx_int8"), machine("amx_int8"), machine(), machine(has_vnni=False))


@pytest.fixture
def old(url: str) -> str:
    """Gives a database of revision 0018 with a run on each of MACHINES, under the names of then."""
    with Store.open(url) as store:
        for each in MACHINES:
            store.begin_run(SETTINGS, each, COMPILER, "0.1.0", None)
    with connected(url) as connection:
        command.downgrade(config(connection), "0018")
        names = connection.execute(sa.text("select name from machine order by id")).scalars().all()
    assert names == [machine().name, machine().name, machine().name, machine(has_vnni=False).name]
    return url


@pytest.mark.slow
def test_machines_with_tiles_are_found_under_their_names(old: str) -> None:
    with Store.open(old) as store:
        for run, each in enumerate(MACHINES, start=1):
            assert store.run(run).machine == each
            (found,) = store.matching_runs(RunQuery(TaskQuery(machine=each.name)))
            assert found.id == run


def test_a_new_run_on_a_renamed_machine_shares_its_row(old: str) -> None:
    with Store.open(old) as store:
        for each in MACHINES:
            store.begin_run(SETTINGS, each, COMPILER, "0.1.0", None)
    with connected(old) as connection:
        assert connection.execute(sa.text("select count(*) from machine")).scalar() == len(MACHINES)
