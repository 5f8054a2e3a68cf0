"""Fusions of kind convolution as text, for tests."""

from dataclasses import dataclass

from tests.texts import filled
from tuner.mlir.ir.linalg import LAYOUTS

LOOPS = "abcde"
NEXT = "\n              "


@dataclass(frozen=True)
class Convolution:
    """A named convolution of small sizes with an epilogue: none, bias and relu, or those and a residual.

    One of bf16 sums in f32; its epilogue reads bf16, and rounds to bf16 once.
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

    @property
    def sums(self) -> str:
        """Returns the element type of the sums."""
        return "f32" if self.element == "bf16" else self.element

    @property
    def output(self) -> str:
        """Returns the element type of the output."""
        return self.sums if self.epilogue == "none" else self.element

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Returns the shapes of the arguments: input, weights, what the epilogue reads, output."""
        x, w, y = LAYOUTS[self.name]
        bias = tuple(self._sizes(y)[each] for each in self._of_bias)
        more = {"none": (), "bias_relu": (bias,), "residual": (bias, self._shape(y))}[self.epilogue]
        return (self._shape(x, is_input=True), self._shape(w), *more, self._shape(y))

    @property
    def _of_bias(self) -> str:
        output = LAYOUTS[self.name][2]
        return "".join(each for each in output if each in ("gf" if "f" in output else "c"))

    def _sizes(self, letters: str, *, is_input: bool = False) -> dict[str, int]:
        sizes = {"n": self.images, "g": self.groups, "c": self.channels, "f": self.filters}
        sizes |= {"H": self.height, "W": self.width}
        sizes |= dict(zip("hw", self.window, strict=True))
        if is_input:
            for place, name in enumerate("HW"):
                seen = (self.window[place] - 1) * self.dilations[place] + 1
                sizes[name] = (sizes[name] - 1) * self.strides[place] + seen
        return {each: sizes[each] for each in letters}

    def _shape(self, letters: str, *, is_input: bool = False) -> tuple[int, ...]:
        return tuple(self._sizes(letters, is_input=is_input).values())

    def text(self) -> str:
        """Returns the text of the fusion."""
        shapes, last = self.shapes, len(self.shapes) - 1
        marks = ["" if place in (0, 3, last) else " {tuner.weight}" for place in range(len(shapes))]
        marks[1] = " {tuner.weight}" if self.is_weight else ""
        elements = [*[self.element] * last, self.output]
        arguments = ", ".join(
            f"%m{place}: {self._type('memref', shape, element)}{mark}"
            for place, (shape, mark, element) in enumerate(zip(shapes, marks, elements, strict=True))
        )
        reads = "\n".join(
            f"%t{place} = bufferization.to_tensor %m{place} restrict : {self._type('memref', shape)}"
            f" to {self._type('tensor', shape)}"
            for place, shape in enumerate(shapes[:-1])
        )
        of_y, stored = (self._type("tensor", shapes[-1], each) for each in (self.sums, self.output))
        return filled(
            __file__,
            "FUSION",
            arguments=arguments,
            reads=reads,
            sums=self.sums,
            of_y=of_y,
            name=self.name,
            steps=self._steps(),
            root=", root" if self.epilogue == "none" else "",
            of_x=self._type("tensor", shapes[0]),
            of_w=self._type("tensor", shapes[1]),
            epilogue=self._epilogue(),
            result="p" if self.epilogue == "none" else "r",
            last=last,
            stored=stored,
            memref=self._type("memref", shapes[-1], self.output),
        )

    def _steps(self) -> str:
        count = LAYOUTS[self.name][1].count("h") + 1
        parts = (("strides", self.strides), ("dilations", self.dilations))
        return ", ".join(
            f"{name} = dense<{list(steps[-count:])}> : tensor<{count}xi64>" for name, steps in parts
        )

    def _type(self, kind: str, shape: tuple[int, ...], element: str = "") -> str:
        return f"{kind}<{''.join(f'{size}x' for size in shape)}{element or self.element}>"

    def _epilogue(self) -> str:
        if self.epilogue == "none":
            return ""
        output = LAYOUTS[self.name][2]
        loops = LOOPS[: len(output)]
        bias = ", ".join(loops[output.index(each)] for each in self._of_bias)
        whole = f"affine_map<({', '.join(loops)}) -> ({', '.join(loops)})>"
        maps = [whole, f"affine_map<({', '.join(loops)}) -> ({bias})>", whole][: len(self.shapes) - 2]
        operands = ["%p", "%t2", "%t3"][: len(maps)]
        kinds = [self._type("tensor", shape) for shape in self.shapes[2:-1]]
        kinds = [self._type("tensor", self.shapes[-1], self.sums), *kinds]
        element, of_y = self.sums, self._type("tensor", self.shapes[-1], self.output)
        read = [element] + [self.element] * (len(maps) - 1)
        wide = [f"%w{place} = arith.extf %x{place} : bf16 to f32" for place in range(1, len(maps))]
        is_narrow = self.element == "bf16"
        letter = "w" if is_narrow else "x"
        residual = f"%s = arith.addf %b, %{letter}2 : {element}" if self.epilogue == "residual" else ""
        given = ", ".join(f"%x{place}: {each}" for place, each in enumerate(read))
        start = "%e"
        if is_narrow:
            start = "%y"
        lines = NEXT.join(
            [
                *(wide if is_narrow else []),
                f"%b = arith.addf %x0, %{letter}1 : {element}",
                residual,
                f"%q = arith.maximumf {'%s' if residual else '%b'}, %z : {element}",
                "%n = arith.truncf %q : f32 to bf16" if is_narrow else "",
            ]
        )
        return filled(
            __file__,
            "EPILOGUE",
            empty=f"%y = tensor.empty() : {of_y}" if is_narrow else "",
            maps=", ".join([*maps, whole]),
            parallel=", ".join(['"parallel"'] * len(output)),
            operands=", ".join(operands),
            types=", ".join(kinds),
            start=start,
            of_y=of_y,
            given=given,
            output=self.output,
            lines=lines,
            yielded="%n" if is_narrow else "%q",
        )
