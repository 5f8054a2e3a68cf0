import pytest

from tests.programs.lowering.device_programs import (
    BUFFER,
    TWO_CHAINS,
    alloc,
    copy,
    free,
    host_function,
    launch,
    main_function,
    store,
)

pytestmark = pytest.mark.mlir

explicit_memory = pytest.importorskip("tuner.programs.lowering.explicit_memory")


def mixes(*lines: str, **options: bool) -> bool:
    with main_function(host_function(*lines)) as (_, function):
        return bool(explicit_memory.mixes_memory(function, **options))


def test_a_program_that_copies_for_itself_does_not_mix() -> None:
    with main_function(TWO_CHAINS) as (_, function):
        assert not explicit_memory.mixes_memory(function)


def test_a_kernel_on_an_argument_mixes_unless_that_is_device_memory_or_registered() -> None:
    lines = (alloc("da"), launch("add", "da", "b", "da"), free("da"))
    assert mixes(*lines)
    assert not mixes(*lines, device_arguments=True)
    register = (f"%u = memref.cast %b : {BUFFER} to memref<*xf32>", "gpu.host_register %u : memref<*xf32>")
    assert not mixes(*register, *lines)


def test_a_host_load_of_device_memory_mixes_unless_it_is_shared() -> None:
    lines = (alloc("da"), copy("da", "a"), *store("da"), free("da"))
    assert mixes(*lines)
    assert not mixes(*(line.replace("gpu.alloc", "gpu.alloc host_shared") for line in lines))


def test_memory_of_one_kind_is_left() -> None:
    with main_function(TWO_CHAINS) as (module, function):
        explicit_memory.without_explicit_memory(function)
        text = str(module).split("gpu.module")[0]
    assert text.count("memref.alloc()") == text.count("memref.dealloc") == 3
    assert text.count("memref.copy") == 3
    assert "gpu.alloc" not in text
