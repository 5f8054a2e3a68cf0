"""The configuration of a launch with clusters, for cuLaunchKernelEx."""

import ctypes
from dataclasses import dataclass

from tuner.core.device import Extent

CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION


@dataclass(frozen=True)
class LaunchConfig:
    """The configuration of a kernel launch: grid, block, cluster, bytes of dynamic shared memory, stream."""

    grid: Extent
    block: Extent
    shared_bytes: int
    stream: int
    cluster: Extent


class CLaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute of cuda.h as a ctypes struct: an id and 64 bytes; a cluster's size comes first."""

    _fields_ = [
        ("id", ctypes.c_int),
        ("padding", ctypes.c_int),
        ("cluster", ctypes.c_uint * 3),
        ("rest", ctypes.c_uint8 * 52),
    ]


class CLaunchConfig(ctypes.Structure):
    """CUlaunchConfig of cuda.h as a ctypes struct: grid, block, shared memory, stream, attributes."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(CLaunchAttribute)),
        ("attribute_count", ctypes.c_uint),
    ]


def c_config(config: LaunchConfig) -> CLaunchConfig:
    """Returns the configuration of a launch as CUlaunchConfig, with the cluster's size as its attribute.

    The struct keeps the attribute's memory alive.
    """
    attribute = CLaunchAttribute(CLUSTER_DIMENSION, 0, (ctypes.c_uint * 3)(*config.cluster))
    return CLaunchConfig(
        (ctypes.c_uint * 3)(*config.grid),
        (ctypes.c_uint * 3)(*config.block),
        config.shared_bytes,
        config.stream,
        ctypes.pointer(attribute),
        1,
    )
