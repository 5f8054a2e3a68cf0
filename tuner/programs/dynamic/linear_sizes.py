"""Sizes of a program that depend on one size n, which is known at a call: multiples of n, plus a constant."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LinearSize:
    """The number ``of_n * n + constant``."""

    of_n: int = 0
    constant: int = 0

    @property
    def is_static(self) -> bool:
        """Returns whether the number does not depend on n."""
        return self.of_n == 0

    @property
    def text(self) -> str:
        """Returns the number as people write it: ``n``, ``2n+1``, ``8``."""
        if self.is_static:
            return str(self.constant)
        factor = {1: "", -1: "-"}.get(self.of_n, str(self.of_n))
        if self.constant == 0:
            return f"{factor}n"
        return f"{factor}n{self.constant:+d}"

    def at(self, size: int) -> int:
        """Returns the number for n = ``size``."""
        return self.of_n * size + self.constant

    def plus(self, other: "LinearSize") -> "LinearSize":
        return LinearSize(self.of_n + other.of_n, self.constant + other.constant)

    def minus(self, other: "LinearSize") -> "LinearSize":
        return self.plus(other.scaled(-1))

    def scaled(self, factor: int) -> "LinearSize":
        return LinearSize(self.of_n * factor, self.constant * factor)

    def times(self, other: "LinearSize") -> "LinearSize | None":
        """Returns the product; None where it is not linear in n."""
        if self.is_static:
            return other.scaled(self.constant)
        if other.is_static:
            return self.scaled(other.constant)
        return None

    def divided(self, other: "LinearSize") -> "LinearSize | None":
        """Returns the quotient by a number that divides every value of this one; None for other numbers."""
        divisor = other.constant
        if not other.is_static or divisor <= 0 or self.of_n % divisor or self.constant % divisor:
            return None
        return LinearSize(self.of_n // divisor, self.constant // divisor)


SIZE_N = LinearSize(1)
Shape = tuple[LinearSize, ...]  # of a tensor


def static_size(number: int) -> LinearSize:
    """Returns a size that does not depend on n."""
    return LinearSize(0, number)


def shape_at(shape: Shape, size: int) -> tuple[int, ...]:
    """Returns a shape for n = ``size``."""
    return tuple(dimension.at(size) for dimension in shape)


def shape_text(shape: Shape) -> str:
    """Returns a shape as text: ``n x 32``."""
    return " x ".join(dimension.text for dimension in shape) or "one number"
