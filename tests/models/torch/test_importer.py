"""Weights leave PyTorch as bytes: of each type, shared, strided, empty; only those that are read."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402

from tuner.mlir.ir.resources import joined_payload, split_payload  # noqa: E402
from tuner.models.torch.export import export_module  # noqa: E402

FLOATS, WIDE = torch.arange(6.0).reshape(2, 3), torch.arange(12.0, dtype=torch.float64).reshape(4, 3).t()
HALVES, TRUTHS = torch.arange(3).to(torch.bfloat16), torch.tensor([True, False, True])


class Weighted(nn.Module):
    """Reads two weights of other types, one twice, one of booleans and one transposed; one is not read."""

    def __init__(self) -> None:
        super().__init__()
        weights = {"floats": FLOATS, "halves": HALVES, "truths": TRUTHS, "wide": WIDE}
        for name, tensor in {**weights, "idle": torch.ones(7)}.items():
            self.register_buffer(name, tensor)
        self.same = self.floats

    def forward(self, x: Any) -> Any:
        doubled = x + self.floats + self.same + self.halves
        return torch.where(self.truths, doubled.double(), doubled.double() @ self.wide[:, :3])


def test_bytes_of_weights_follow_the_text_that_names_them() -> None:
    split = split_payload(export_module(Weighted(), (torch.ones(2, 3),)).text)
    assert {name.partition("torch_tensor_")[2]: data for name, data in split.resources.items()} == {
        "2_3_torch.float32": FLOATS.numpy().tobytes(),
        "3_torch.bfloat16": HALVES.view(torch.int16).numpy().tobytes(),
        "3_torch.uint8": TRUTHS.numpy().tobytes(),
        "3_4_torch.float64": WIDE.contiguous().numpy().tobytes(),
    }
    assert all(f"dense_resource<{name}>" in split.text for name in split.resources)


class AddsSumOfNoRows(nn.Module):
    """Reads a weight of no elements to compute elements."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.empty(0, 3))

    def forward(self, x: Any) -> Any:
        return x + self.rows.sum(0)


def test_a_weight_without_elements_is_one() -> None:
    split = split_payload(export_module(AddsSumOfNoRows(), (torch.ones(2, 3),)).text)
    assert list(split.resources.values()) == [b""]


def test_joining_undoes_splitting() -> None:
    text = 'module { "a"() {b = dense_resource<"x y"> : tensor<2xi8>, c = dense_resource<z_1> : tensor<1xi8>}'
    found = split_payload(joined_payload(text, {'"x y"': b"\x00\xff", "z_1": b"\x07", "unread": b"\x01"}))
    assert (found.text, found.resources) == (text, {'"x y"': b"\x00\xff", "z_1": b"\x07"})
    assert joined_payload("module {}", {"unread": b"\x01"}) == "module {}"
