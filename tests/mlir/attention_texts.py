"""Texts of attentions as fusions, see ``tuner.core.fusions``."""

from dataclasses import dataclass

from tests.group_texts import PARALLEL, REDUCTION, Argument, fusion, generic, tensor

MASKS = ("none", "scale", "bias", "bias_of_heads", "seen", "hidden_rows")
INFINITIES = {"f32": "0xFF800000", "f64": "0xFFF0000000000000"}  # negative


@dataclass(frozen=True)
class Attention:
    """softmax(Q K + mask) V, and a residual after it as the epilogue.

    The mask "hidden_rows" gives 0 where all scores of a row are -inf, as PyTorch's own attention does; the
    others give NaN.
    """

    sizes: tuple[int, int, int, int]  # queries, keys, width of Q and K, width of V
    mask: str = "scale"  # one of MASKS
    batch: int = 0  # 0: matrices
    has_epilogue: bool = False
    element: str = "f32"

    @property
    def lead(self) -> tuple[int, ...]:
        return (self.batch,) if self.batch else ()

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Returns the shapes of Q, K, V, the scores, a number for each row, and the result."""
        m, n, k, width = self.sizes
        ends = ((m, k), (k, n), (n, width), (m, n), (m,), (m, width))
        return tuple((*self.lead, *end) for end in ends)

    @property
    def mask_argument(self) -> Argument | None:
        m, n = self.sizes[:2]
        shape = {"bias": (m, n), "seen": (m, n), "bias_of_heads": (*self.lead, m, n)}.get(self.mask)
        return Argument("mask", shape, "i1" if self.mask == "seen" else self.element) if shape else None

    def text(self) -> str:
        """Returns the module with the function ``group``."""
        q, k, v, _, _, out = self.shapes
        named = (("q", q), ("k", k), ("v", v), *((("r", out),) if self.has_epilogue else ()))
        inputs = [Argument(name, shape, self.element) for name, shape in named]
        if self.mask_argument:
            inputs.insert(2, self.mask_argument)
        lines = [*self._constants(), *self._scores(), *self._softmax(), *self._result()]
        last = "%y" if self.has_epilogue else "%u"
        return fusion(inputs, Argument("out", out, self.element), "\n".join(lines), last)

    def _constants(self) -> list[str]:
        *_, scores, row, out = (tensor(shape, self.element) for shape in self.shapes)
        element, truths = self.element, tensor(self.shapes[4], "i1")
        lines = [f"%least = arith.constant {INFINITIES[element]} : {element}"]
        lines += [f"%z = arith.constant 0.0 : {element}", "%true = arith.constant true"]
        lines += [f"%scale = arith.constant 0.125 : {element}"]
        starts = (("z", scores), ("least", row), ("z", row), ("true", truths), ("z", out))
        for at, (number, kind) in enumerate(starts):
            of = "i1" if number == "true" else element
            lines.append(f"%e{at} = tensor.empty() : {kind}")
            lines.append(f"%f{at} = linalg.fill ins(%{number} : {of}) outs(%e{at} : {kind}) -> {kind}")
        return lines

    def _scores(self) -> list[str]:
        whole, operands = tensor(self.shapes[3], self.element), [("%p", tensor(self.shapes[3], self.element))]
        maps = [self._map()]
        if self.mask_argument:
            argument = self.mask_argument
            operands.append(("%mask_t", tensor(argument.shape, argument.element)))
            maps.append(self._map(lead=len(argument.shape) > 2))
        change = {
            "none": "arith.addf %x0, %z",
            "seen": "arith.select %x1, %x0, %least",
            "bias": "arith.addf %x0, %x1",
            "bias_of_heads": "arith.addf %x0, %x1",
        }.get(self.mask, "arith.mulf %x0, %scale")
        product = self._product("%p", ("%q_t", "%k_t", "%f0"), (0, 1, 3), "{contraction}")
        return [product, self._parallel("%s", maps, operands, ("%e0", whole), [change])]

    def _softmax(self) -> list[str]:
        whole, row = (tensor(shape, self.element) for shape in self.shapes[3:5])
        maps, truths = [self._map(), self._map(1)], tensor(self.shapes[4], "i1")
        power = ["arith.subf %x0, %x1", "math.exp %v0"]
        lines = [
            self._reduced("%most", "%s", ("%f1", row), [("arith.maximumf %x0, %o", self.element)]),
            self._parallel("%powers", maps, [("%s", whole), ("%most", row)], ("%e0", whole), power),
            self._reduced("%sum", "%powers", ("%f2", row), [("arith.addf %x0, %o", self.element)]),
        ]
        operands, change = [("%powers", whole), ("%sum", row)], ["arith.divf %x0, %x1"]
        if self.mask == "hidden_rows":
            steps = [("arith.cmpf oeq, %x0, %least", self.element), ("arith.andi %v0, %o", "i1")]
            lines.append(self._reduced("%hidden", "%s", ("%f3", truths), steps))
            operands, maps = [*operands, ("%hidden", truths)], [*maps, self._map(1)]
            change = [*change, "arith.select %x2, %z, %v0"]
        return [*lines, self._parallel("%w", maps, operands, ("%e0", whole), change)]

    def _result(self) -> list[str]:
        kind = tensor(self.shapes[5], self.element)
        marks = "{contraction}" if self.has_epilogue else "{contraction, root}"
        lines = [self._product("%u", ("%w", "%v_t", "%f4"), (3, 2, 5), marks)]
        if self.has_epilogue:
            maps, operands = [self._map()] * 2, [("%u", kind), ("%r_t", kind)]
            lines.append(
                self._parallel("%y", maps, operands, ("%out_t", kind), ["arith.addf %x0, %x1"], "root")
            )
        return lines

    def _product(self, result: str, names: tuple[str, ...], shapes: tuple[int, int, int], marks: str) -> str:
        name = "linalg.batch_matmul" if self.batch else "linalg.matmul"
        left, right, out = (tensor(self.shapes[each], self.element) for each in shapes)
        ins = f"ins({names[0]}, {names[1]} : {left}, {right})"
        return f"{result} = {name} {marks} {ins} outs({names[2]} : {out}) -> {out}"

    def _map(self, dropped: int = 0, *, lead: bool = True) -> str:
        names = ["b", "i", "j"] if self.batch else ["i", "j"]
        read = names[: len(names) - dropped] if lead else names[-2:]
        return f"affine_map<({', '.join(names)}) -> ({', '.join(read)})>"

    def _parallel(
        self,
        result: str,
        maps: list[str],
        operands: list[tuple[str, str]],
        start: tuple[str, str],
        steps: list[str],
        attributes: str = "",
    ) -> str:
        lines = _steps([(step, self.element) for step in steps])
        loops = [PARALLEL] * (len(self.lead) + 2)
        return generic(result, [*maps, self._map()], loops, operands, start, lines, attributes)

    def _reduced(
        self, result: str, operand: str, start: tuple[str, str], steps: list[tuple[str, str]]
    ) -> str:
        loops = [PARALLEL] * (len(self.lead) + 1) + [REDUCTION]
        operands = [(operand, tensor(self.shapes[3], self.element))]
        return generic(result, [self._map(), self._map(1)], loops, operands, start, _steps(steps))


def _steps(steps: list[tuple[str, str]]) -> str:
    """Returns the body of a generic whose operations are %v0, %v1, ...; the last one is yielded."""
    lines = [f"%v{number} = {step} : {kind}" for number, (step, kind) in enumerate(steps)]
    return "\n      ".join([*lines, f"linalg.yield %v{len(steps) - 1} : {steps[-1][1]}"])
