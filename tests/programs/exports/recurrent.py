"""Exports of recurrent cells, and of models that ``benchmarks.models`` times, at small sizes."""

import torch
from torch import nn

from benchmarks.model_zoo.perceptrons import DLRM
from benchmarks.model_zoo.transformers import Encoder, GPT2Step
from tests.programs.exports.export import export, of

EXPORTS = (
    export("lstm_cell", lambda: nn.LSTMCell(12, 16), (5, 12)),
    export("gru_cell", lambda: nn.GRUCell(12, 16), (5, 12), (5, 16)),
    export("encoder", lambda: Encoder(32, 4, 64), (1, 12, 32)),
    export("gpt2_step", lambda: GPT2Step(32, 4), (1, 1, 32), *((1, 4, 12, 8),) * 2, torch.tensor(7)),
    export("dlrm", lambda: DLRM(5, 3, 20, 4), (6, 5), torch.arange(18).view(6, 3)),
    of("exponential_average", lambda x, y: torch.lerp(x, y.tanh(), 0.1), (5, 16), (5, 16)),
)
