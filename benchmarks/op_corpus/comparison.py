"""Whether results of a program are those of eager PyTorch, within what their types can hold."""

from typing import Any

import torch
from torch.utils import _pytree

# Relative and absolute, as torch.testing allows; the absolute one counts from the largest number of a result
TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-3, 1e-3),
    torch.bfloat16: (1.6e-2, 8e-3),
}
EAGER_ERRORS = 4.0  # times eager's own largest error: another order of the same operations errs otherwise


def difference(found: Any, wanted: Any, truth: Any = None) -> str:
    """Returns in one line how results differ from eager's; "" where they do not.

    ``truth``: the same results computed in f64, of which nothing but the numbers is compared; None: eager's.
    """
    ours, spec = _pytree.tree_flatten(found)
    theirs, expected = _pytree.tree_flatten(wanted)
    if len(ours) != len(theirs):
        return f"found {spec.num_leaves} results, eager gives {expected.num_leaves}"
    exact, _ = _pytree.tree_flatten(truth)
    if truth is None or [_shape(each) for each in exact] != [_shape(each) for each in theirs]:
        exact = theirs
    lines = (_of_leaf(*each) for each in zip(ours, theirs, exact, strict=True))
    return next((f"result {number}: {line}" for number, line in enumerate(lines) if line), "")


def _of_leaf(found: Any, wanted: Any, truth: Any) -> str:
    if not isinstance(wanted, torch.Tensor) or not isinstance(found, torch.Tensor):
        is_same = type(found) is type(wanted) and (found == wanted or found != found)
        return "" if is_same else f"found {str(found)[:60]}, eager gives {str(wanted)[:60]}"
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return (
            f"found {found.dtype} of shape {tuple(found.shape)}, "
            f"eager gives {wanted.dtype} of shape {tuple(wanted.shape)}"
        )
    found, wanted, truth = (_plain(each) for each in (found, wanted, truth))
    is_right = _right(found, wanted, truth) if found.dtype in TOLERANCES else found == wanted
    if bool(is_right.all()):
        return ""
    at = int((~is_right).flatten().nonzero()[0])
    numbers = [each.flatten()[at].item() for each in (found, wanted)]
    return f"found {numbers[0]}, eager gives {numbers[1]} at {at} and {int((~is_right).sum()) - 1} others"


def _right(found: torch.Tensor, wanted: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Returns which numbers are eager's or the true ones, NaN and infinities exactly."""
    relative, absolute = TOLERANCES[found.dtype]
    rounded = truth.to(found.dtype).double()
    ours, eager = found.double(), wanted.double()
    errors = (eager - rounded).abs()
    eager_error = errors[errors.isfinite()].max().item() if errors.isfinite().any() else 0.0
    finite = rounded[rounded.isfinite()].abs()
    largest = max(1.0, finite.max().item() if finite.numel() else 0.0)
    bound = relative * rounded.abs() + absolute * largest + EAGER_ERRORS * eager_error
    is_near = (ours - rounded).abs() <= bound
    return is_near & rounded.isfinite() | _same(ours, eager) | _same(ours, rounded)


def _same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a == b) | (a.isnan() & b.isnan())


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a dense tensor of real numbers without lazy negation or conjugation."""
    tensor = tensor.detach().to_dense().resolve_neg().resolve_conj()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _shape(leaf: Any) -> Any:
    return tuple(leaf.shape) if isinstance(leaf, torch.Tensor) else None
