"""Texts of attentions as fusions, see ``tuner.core.fusions``."""

from dataclasses import dataclass

from tests.fusion_texts import PARALLEL, REDUCTION, Argument, fusion, tensor
from tests.texts import filled, text_beside

INFINITIES = {"f32": "0xFF800000", "f64": "0xFFF0000000000000"}  # negative
CHANGES = {
    "none": "arith.addf %x0, %z",
    "scale": "arith.mulf %x0, %scale",
    "bias": "arith.addf %x0, %x1",
    "bias_of_heads": "arith.addf %x0, %x1",
    "seen": "arith.select %x1, %x0, %least",
    "hidden_rows": "arith.mulf %x0, %scale",
}
MASKS = tuple(CHANGES)


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
        """Returns the module with the function ``fusion``."""
        q, k, v, _, row, out = self.shapes
        named = (("q", q), ("k", k), ("v", v), *((("r", out),) if self.has_epilogue else ()))
        inputs = [Argument(name, shape, self.element) for name, shape in named]
        if self.mask_argument:
            inputs.insert(2, self.mask_argument)
        weights = "WEIGHTS_OF_HIDDEN_ROWS" if self.mask == "hidden_rows" else "WEIGHTS"
        names = ("q", "k", "v", "scores", "row", "out")
        values = {name: tensor(shape, self.element) for name, shape in zip(names, self.shapes, strict=True)}
        values |= {"e": self.element, "truths": tensor(row, "i1"), "least": INFINITIES[self.element]}
        values |= {"change": CHANGES[self.mask], **self._of_mask(), **self._loops()}
        values["matmul"] = "linalg.batch_matmul" if self.batch else "linalg.matmul"
        values["marks"] = "{contraction}" if self.has_epilogue else "{contraction, root}"
        body = filled(__file__, "ATTENTION", weights=text_beside(__file__, weights), **values)
        body += filled(__file__, "RESIDUAL", **values) if self.has_epilogue else ""
        return fusion(inputs, Argument("out", out, self.element), body, "%y" if self.has_epilogue else "%u")

    def _of_mask(self) -> dict[str, str]:
        mask = self.mask_argument
        if mask is None:
            return dict.fromkeys(("mask", "mask_type", "mask_element", "mask_map"), "")
        parts = {"mask": "%mask_t", "mask_type": tensor(mask.shape, mask.element)}
        parts |= {"mask_element": f"%x1: {mask.element}", "mask_map": self._map(-len(mask.shape), None)}
        return {name: f", {part}" for name, part in parts.items()}

    def _loops(self) -> dict[str, str]:
        count = len(self.lead) + 2
        loops = {"parallel": [PARALLEL] * count, "reduced": [*[PARALLEL] * (count - 1), REDUCTION]}
        maps = {"whole": self._map(0, None), "by_row": self._map(0, -1)}
        return maps | {name: ", ".join(kinds) for name, kinds in loops.items()}

    def _map(self, first: int, end: int | None) -> str:
        names = ["b", "i", "j"] if self.batch else ["i", "j"]
        return f"affine_map<({', '.join(names)}) -> ({', '.join(names[first:end])})>"
