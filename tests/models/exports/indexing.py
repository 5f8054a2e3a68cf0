"""Exports that choose, move and join elements: gathers, masks, slices, padding, scans."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.models.exports.export import export, of

TOKENS = torch.tensor([[1, 5, 0, 19], [7, 7, 2, 11]])
ROWS = torch.tensor([4, 0, 4, 2, 5])
PICKS = torch.tensor([[0, 2, 1], [6, 6, 3], [5, 0, 0], [1, 2, 3]])

EXPORTS = (
    export("embedding", lambda: nn.Embedding(20, 12), TOKENS),
    export("embeddings", lambda: nn.Sequential(nn.Embedding(20, 12), nn.Flatten(), nn.Linear(48, 3)), TOKENS),
    of("index_select", lambda x, i: torch.index_select(x, 0, i), (6, 10), ROWS),
    of("index_select_columns", lambda x, i: torch.index_select(x, 1, i), (3, 10), ROWS),
    of("index_by_a_tensor", lambda x, i: x[i], (6, 10), ROWS),
    of("index_by_two_tensors", lambda x, i: x[i, i], (6, 6), ROWS),
    of("gather", lambda x, i: torch.gather(x, 1, i), (4, 7), PICKS),
    of("take_along_dim", lambda x, i: torch.take_along_dim(x, i, 1), (4, 7), PICKS),
    of("where", lambda x, y: torch.where(x > y, x, -y), (6, 10), (6, 10)),
    of("where_of_numbers", lambda x: torch.where(x > 0, 1.0, -1.0), (6, 10)),
    of("masked_fill_of_wide_rows", lambda x, m: x.masked_fill(m, 7.0), (5, 72), torch.arange(72) % 3 == 0),
    of("masked_fill", lambda x, m: x.masked_fill(m, -torch.inf), (2, 4), TOKENS > 5),
    of("concatenated", lambda x, y: torch.cat((x, y, x), 1), (4, 5), (4, 3)),
    of("concatenated_rows", lambda x, y: torch.cat((x, y)) * 2, (4, 5), (3, 5)),
    of("stacked", lambda x, y: torch.stack((x, y), 1), (4, 5), (4, 5)),
    of("split", lambda x: torch.split(x, (3, 5, 2), -1), (4, 10)),
    of("chunks", lambda x: torch.mul(*x.chunk(2, -1)), (4, 10)),
    of("unbound", lambda x: sum(x.unbind(1)), (4, 3, 5)),
    of("padded", lambda x: F.pad(x, (1, 2, 3, 0), value=0.5), (4, 5)),
    of("padded_reflected", lambda x: F.pad(x, (2, 1), mode="reflect"), (3, 6)),
    of("cropped", lambda x: F.pad(x, (-1, -2)), (4, 8)),
    of("sliced_in_steps", lambda x: x[1:, ::3], (5, 11)),
    of("slices_added", lambda x: x[:, 1:] - x[:, :-1], (4, 9)),
    of("flipped", lambda x: x.flip(0, 1), (3, 5)),
    of("rolled", lambda x: x.roll(2, 1), (3, 7)),
    of("expanded", lambda x: x[:, None].expand(3, 4, 5) + 1, (3, 5)),
    of("repeated", lambda x: x.repeat(2, 3), (3, 5)),
    of("repeat_interleaved", lambda x: x.repeat_interleave(3, 1), (3, 5)),
    of("permuted", lambda x: x.permute(2, 0, 1).contiguous(), (3, 4, 5)),
    of("transposed_view", lambda x: x.T, (3, 5)),
    of("reshaped", lambda x: x.reshape(5, 6, 2).flatten(1), (3, 4, 5)),
    of("squeezed", lambda x: x.squeeze(1).unsqueeze(-1), (3, 1, 5)),
    of("lower_triangle", lambda x: x.tril(), (6, 6)),
    of("diagonal", lambda x: torch.diagonal(x), (6, 6)),
    of("cumulative_sum", lambda x: x.cumsum(-1), (4, 9)),
    of("cumulative_sum_of_integers", lambda x: x.cumsum(0), TOKENS),
    of("one_hot", lambda i: F.one_hot(i, 20).float(), TOKENS),
    of("ramp_added", lambda x: x + torch.arange(5), (3, 5)),
    of("grid", lambda x, y: torch.meshgrid(x, y, indexing="ij"), (3,), (5,)),
)
