"""Host arrays of other packages, seen through DLPack without those packages."""

from typing import Any

import numpy as np
import pytest

from tuner.core.errors import UsageError
from tuner.programs.run.marshalling import host_array

CPU, CUDA = (1, 0), (2, 0)


class Tensor:
    """A tensor of another package: numpy's capsule, and nothing else of numpy's."""

    def __init__(self, array: Any, device: tuple[int, int] = CPU) -> None:
        self.array, self.device = array, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)


class OldTensor(Tensor):
    """One from before DLPack 1.0."""

    def __dlpack__(self, **options: Any) -> Any:
        if "max_version" in options:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**options)


class Nowhere(Tensor):
    """One without memory, such as torch's of device meta."""

    def __dlpack_device__(self) -> tuple[int, int]:
        raise ValueError("unknown device type meta")


@pytest.mark.parametrize("kind", [Tensor, OldTensor])
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 4)])
def test_a_tensor_is_viewed_in_place(kind: Any, shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.float32)
    found = host_array("a", kind(array))
    found += 1
    assert (found.shape, found.dtype) == (shape, array.dtype)
    np.testing.assert_array_equal(array, np.ones(shape, np.float32))


def test_strides_are_the_tensors() -> None:
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    np.testing.assert_array_equal(host_array("a", Tensor(array.T[1:])), array.T[1:])


def test_a_read_only_tensor_stays_read_only() -> None:
    array = np.zeros(4)
    array.flags.writeable = False
    assert not host_array("a", Tensor(array)).flags.writeable


def test_an_array_of_numpy_is_itself() -> None:
    array = np.zeros(4)
    assert host_array("a", array) is array


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0], "a: found list, allowed a numpy array, or one of host memory by DLPack"),
        (Tensor(np.zeros(4), CUDA), r"a: found memory of DLPack device 2, allowed the host's: \(1, 3\)"),
        (Nowhere(None), "a: found Nowhere that is not handed out: unknown device type meta"),
        (np.ma.masked_array(np.zeros(4)), "a: masked arrays are not supported"),
        (Tensor(np.zeros(4, ">f4")), "a: found Tensor that is not handed out: "),
    ],
)
def test_what_is_no_array_of_host_memory_is_refused(value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        host_array("a", value)
