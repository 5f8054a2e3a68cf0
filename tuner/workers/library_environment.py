"""Environment variables of a child process that control its numeric libraries."""

from tuner.workers.services import Environment

# A machine may export these variables for other reasons; OpenBLAS then runs at half its speed.
CLEARED = (
    *("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_VERBOSE", "OMP_PROC_BIND", "OMP_PLACES"),
    *("MKL_CBWR", "MKL_DEBUG_CPU_TYPE", "MKL_ENABLE_INSTRUCTIONS", "MKL_THREADING_LAYER", "MKL_VERBOSE"),
    *("MKL_INTERFACE_LAYER", "KMP_AFFINITY", "GOMP_CPU_AFFINITY", "BLIS_ARCH_TYPE"),
    *("DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "DNNL_VERBOSE", "ONEDNN_VERBOSE"),
)
THREAD_COUNTS = (
    *("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "GOTO_NUM_THREADS", "MKL_NUM_THREADS"),
    *("BLIS_NUM_THREADS", "DPCPP_CPU_NUM_CUS"),
)

# These variables make cuBLAS compute in other types, or slower.
GPU_CLEARED = (
    "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_LAUNCH_BLOCKING",
    "CUBLASLT_WORKSPACE_SIZE",
)


def library_environment(threads: int) -> Environment:
    """Returns the environment changes with which a child's BLAS library uses ``threads`` threads.

    They are (name, value) pairs, value None: unset. Other variables that slow the library are unset.
    """
    cleared = tuple((name, None) for name in CLEARED)
    return (*cleared, *((name, str(threads)) for name in THREAD_COUNTS))


def gpu_library_environment() -> Environment:
    """Returns the environment changes with which cuBLAS in a child process uses its defaults.

    They are (name, None) pairs of variables to unset, which would change its types or slow it.
    """
    return tuple((name, None) for name in GPU_CLEARED)
