"""Fusions of kind convolution as text, for tests."""

from dataclasses import dataclass

from tests.fusion_texts import PARALLEL, Argument, fusion, generic, tensor
from tests.texts import filled
from tuner.mlir.fusions.convolutions import LAYOUTS

READ = {"none": (), "bias_relu": ("bias",), "residual": ("bias", "residual")}  # by the epilogue


@dataclass(frozen=True)
class Convolution:
    """A named convolution of small sizes with an epilogue: none, bias and relu, or those and a residual.

    One of bf16 sums in f32; its epilogue reads bf16, and rounds to bf16 once. One of i8, without an
    epilogue, sums in i32.
    """

    name: str = "linalg.conv_2d_nchw_fchw"
    images: int = 1
    groups: int = 1
    channels: int = 3
    filters: int = 8
    height: int = 4  # of the output; 1 of a convolution along one dimension
    width: int = 4
    window: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    epilogue: str = "none"  # or bias_relu, or residual
    is_weight: bool = True
    element: str = "f32"
    # of volumes: planes of the output and of the window, stride, dilation
    planes: tuple[int, int, int, int] = (2, 3, 1, 1)
    zero_planes: tuple[int, int] = (0, 0)  # of the input, at its start and at its end
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)  # rows before and after, columns before and after

    @property
    def sums(self) -> str:
        """Returns the element type of the sums."""
        return {"bf16": "f32", "i8": "i32"}.get(self.element, self.element)

    @property
    def output(self) -> str:
        """Returns the element type of the output."""
        return self.sums if self.epilogue == "none" else self.element

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Returns the shapes of the arguments: input, weights, what the epilogue reads, output."""
        x, w, y = LAYOUTS[self.name]
        read = {"bias": self._shape(self._of_bias), "residual": self._shape(y)}
        of_read = (read[name] for name in READ[self.epilogue])
        return (self._shape(x, is_input=True), self._shape(w), *of_read, self._shape(y))

    @property
    def _of_bias(self) -> str:
        output = LAYOUTS[self.name][2]
        return "".join(each for each in output if each in ("gf" if "f" in output else "c"))

    @property
    def all_strides(self) -> tuple[int, ...]:
        """Returns the strides along D H W."""
        return (self.planes[2], *self.strides)

    @property
    def all_dilations(self) -> tuple[int, ...]:
        """Returns the dilations along D H W."""
        return (self.planes[3], *self.dilations)

    def _shape(self, letters: str, *, is_input: bool = False) -> tuple[int, ...]:
        sizes = {"n": self.images, "g": self.groups, "c": self.channels, "f": self.filters}
        sizes |= {"H": self.height, "W": self.width, "h": self.window[0], "w": self.window[1]}
        sizes |= {"D": self.planes[0], "d": self.planes[1]}
        if is_input:
            for name, stride, dilation in zip("DHW", self.all_strides, self.all_dilations, strict=True):
                seen = (sizes[name.lower()] - 1) * dilation + 1
                sizes[name] = (sizes[name] - 1) * stride + seen
            sizes["H"] -= sum(self.padding[:2])
            sizes["W"] -= sum(self.padding[2:])
        return tuple(sizes[each] for each in letters)

    @property
    def _read_shape(self) -> tuple[int, ...]:
        """Returns the shape of the input with its padding."""
        top, bottom, left, right = self.padding
        grown = {"H": top + bottom, "W": left + right}
        return tuple(
            size + grown.get(letter, 0)
            for letter, size in zip(LAYOUTS[self.name][0], self.shapes[0], strict=True)
        )

    def _padded(self) -> list[str]:
        if not any(self.padding):
            return []
        parts: dict[str, object] = {"x": tensor(self.shapes[0], self.element), "element": self.element}
        parts |= {"padded": tensor(self._read_shape, self.element)}
        amounts = zip(("top", "bottom", "left", "right"), self.padding, strict=True)
        return [filled(__file__, "PADDING", **parts, **dict(amounts))]

    def text(self) -> str:
        """Returns the text of the fusion."""
        x, w, *read, y = self.shapes
        weights = Argument("w", w, self.element, self.is_weight)
        names = zip(READ[self.epilogue], read, strict=True)
        more = [Argument(name, shape, self.element, name == "bias") for name, shape in names]
        count = sum(each in "dhw" for each in LAYOUTS[self.name][1])
        steps = ", ".join(
            f"{name} = dense<{list(each[-count:])}> : tensor<{count}xi64>"
            for name, each in (("strides", self.all_strides), ("dilations", self.all_dilations))
        )
        parts = {"name": self.name, "attributes": steps if more else f"{steps}, root", "sums": self.sums}
        parts |= {
            "x": tensor(self._read_shape, self.element),
            "input": "%padded" if any(self.padding) else "%x_t",
        }
        parts |= {"w": tensor(w, self.element), "y": tensor(y, self.sums)}
        parts["zero"] = "0" if self.sums == "i32" else "0.0"
        lines = [
            *self._padded(),
            filled(__file__, "CONVOLUTION", **parts),
            *(self._epilogue(more) if more else ()),
        ]
        inputs, output = (
            [Argument("x", x, self.element, zero_planes=self.zero_planes), weights, *more],
            Argument("y", y, self.output),
        )
        return fusion(inputs, output, "\n".join(lines), "%r" if more else "%p")

    def _epilogue(self, read: list[Argument]) -> list[str]:
        letters, sums = LAYOUTS[self.name][2], self.sums
        places = (letters, self._of_bias)
        whole, bias = (f"affine_map<({', '.join(letters)}) -> ({', '.join(to)})>" for to in places)
        maps = [whole, bias, whole][: 1 + len(read)]
        operands = [(f"%{each.name}_t", tensor(each.shape, each.element)) for each in read]
        operands = [("%p", tensor(self.shapes[-1], sums)), *operands]
        is_narrow, kind = self.element == "bf16", tensor(self.shapes[-1], self.output)
        letter = "w" if is_narrow else "x"
        wide = [f"%w{place} = arith.extf %x{place} : bf16 to f32" for place in range(1, len(operands))]
        steps = [*(wide * is_narrow), f"%b = arith.addf %x0, %{letter}1 : {sums}"]
        steps += [f"%s = arith.addf %b, %{letter}2 : {sums}"] * (len(read) == 2)
        steps += [f"%q = arith.maximumf {'%s' if len(read) == 2 else '%b'}, %z : {sums}"]
        steps += ["%n = arith.truncf %q : f32 to bf16"] * is_narrow
        steps += [f"linalg.yield {'%n' if is_narrow else '%q'} : {self.output}"]
        parallel, start = [PARALLEL] * len(letters), ("%narrow" if is_narrow else "%e", kind)
        empty = [f"%narrow = tensor.empty() : {kind}"] * is_narrow
        return [*empty, generic("%r", [*maps, whole], parallel, operands, start, "\n".join(steps), "root")]
