"""Tensors that small modules are called with: drawn numbers, and special ones planted among them."""

from dataclasses import dataclass, replace

import torch

NORMAL, POSITIVE, PROBABILITIES, SIGNS, TRUTHS, INDICES, INTEGERS, ENDS = VALUES = (
    "normal",
    "positive",
    "probabilities",
    "signs",  # -1 and 1
    "truths",
    "indices",
    "integers",  # from -9 to 9
    "ends",  # of the ranges of integers and of f16
)
PLAIN, NAN, INF, ZERO, SUBNORMAL, LARGE = SPECIALS = ("plain", "nan", "inf", "zero", "subnormal", "large")
PLANTED: dict[str, tuple[float, ...]] = {
    NAN: (float("nan"),),
    INF: (float("inf"), float("-inf")),
    ZERO: (0.0, -0.0),
    SUBNORMAL: (1e-39, -1e-39),  # of f32 and bf16; f64 has it, f16 rounds it to 0
    LARGE: (3e4, -3e4),  # f16 has it, its square overflows there alone
}
VERY_LARGE: dict[torch.dtype, float] = {
    torch.float32: 3e38,
    torch.bfloat16: 3e38,
    torch.float64: 1e308,
    torch.float16: 6e4,
}
PLANTED_SHARE = 5  # one element of so many is a special number
# Ends of i8, u8, i16, u16, f16 and i32, as f32 has them, and what lies next to them
ENDS_OF_TYPES = (
    *(0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 127.0, 127.5, 128.0, -128.0, -129.0, 255.0, 256.0, 300.0, -1.0),
    *(32767.0, 32768.0, -32768.0, -32769.0, 65504.0, 65519.0, 65535.0, 65536.0, 2147483520.0, -2147483648.0),
)


@dataclass(frozen=True)
class ModuleArgument:
    """A tensor argument of a small module."""

    shape: tuple[int, ...]
    dtype: str  # its name in torch
    values: str = NORMAL  # one of VALUES
    limit: int = 0  # of INDICES, which are less
    dynamic: int | None = None  # the dimension whose size changes from call to call

    @property
    def type(self) -> torch.dtype:
        """Returns the type of torch."""
        found: torch.dtype = getattr(torch, self.dtype)
        return found

    def of_size(self, size: int) -> "ModuleArgument":
        """Returns the argument with another size of its dynamic dimension."""
        if self.dynamic is None:
            return self
        shape = list(self.shape)
        shape[self.dynamic] = size
        return replace(self, shape=tuple(shape))

    def tensor(self, seed: int, special: str = PLAIN) -> torch.Tensor:
        """Returns the tensor with drawn numbers, of floats with some that are ``special``."""
        rng = torch.Generator().manual_seed(seed)
        numbers = self._numbers(rng)
        if self.type.is_floating_point and special != PLAIN and self.values not in (SIGNS, PROBABILITIES):
            numbers = self._planted(numbers, rng, special)
        return numbers.to(self.type)

    def _numbers(self, rng: torch.Generator) -> torch.Tensor:
        match self.values:
            case "positive":
                return torch.rand(self.shape, generator=rng, dtype=torch.float64) * 2 + 0.1
            case "probabilities":
                return torch.rand(self.shape, generator=rng, dtype=torch.float64) * 0.98 + 0.01
            case "signs":
                return torch.randint(0, 2, self.shape, generator=rng) * 2 - 1
            case "truths":
                return torch.randint(0, 2, self.shape, generator=rng)
            case "indices":
                return torch.randint(0, self.limit, self.shape, generator=rng)
            case "integers":
                low = 0 if self.type is torch.uint8 else -9
                return torch.randint(low, 10, self.shape, generator=rng)
            case "ends":
                return self._ends(rng)
        return torch.randn(self.shape, generator=rng, dtype=torch.float64)

    def _ends(self, rng: torch.Generator) -> torch.Tensor:
        """Returns ends of ranges that the type has: of an integer type those within its own."""
        ends = torch.tensor(ENDS_OF_TYPES, dtype=torch.float64)
        if not self.type.is_floating_point and self.type is not torch.bool:
            limits = torch.iinfo(self.type)
            ends = ends.trunc()
            ends = ends[(ends >= limits.min) & (ends <= limits.max)]
        return ends[torch.randint(0, len(ends), self.shape, generator=rng)]

    def _planted(self, numbers: torch.Tensor, rng: torch.Generator, special: str) -> torch.Tensor:
        choices = PLANTED[special]
        if special == LARGE:
            choices = (*choices, VERY_LARGE[self.type])
        planted = torch.tensor(choices, dtype=torch.float64)
        drawn = planted[torch.randint(0, len(planted), self.shape, generator=rng)]
        at = torch.randint(0, PLANTED_SHARE, self.shape, generator=rng) == 0
        return torch.where(at, drawn, numbers.double())
