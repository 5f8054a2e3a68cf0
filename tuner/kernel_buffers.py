"""The buffers in global memory that a problem itself has."""

from tuner.kernel import KernelBuffer
from tuner.problem import Problem


def buffers_of(problem: Problem) -> tuple[KernelBuffer, ...]:
    """Returns A, B[, bias] and C in the order of the payload function's arguments."""
    m, n, k = problem.sizes
    bias = (
        (KernelBuffer("bias", n * problem.output_bytes, "input"),) if problem.epilogue == "bias_relu" else ()
    )
    return (
        KernelBuffer("a", m * k * problem.input_bytes, "input"),
        KernelBuffer("b", k * n * problem.input_bytes, "input"),
        *bias,
        KernelBuffer("c", m * n * problem.output_bytes, "output"),
    )
