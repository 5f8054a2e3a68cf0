from tuner.programs.times import KernelTime
from tuner.programs.timing import typical


def kernels(*seconds: float) -> tuple[KernelTime, ...]:
    return tuple(KernelTime("k", 0.0, each) for each in seconds)


def test_the_round_of_the_median_sum_is_typical() -> None:
    rounds = [kernels(1.0, 2.0), kernels(9.0), kernels(0.5), kernels(2.0, 2.0), kernels(0.1)]
    assert typical(rounds) == kernels(1.0, 2.0)


def test_of_two_in_the_middle_the_first_is_taken() -> None:
    assert typical([kernels(1.0), kernels(2.0)]) == kernels(1.0)
