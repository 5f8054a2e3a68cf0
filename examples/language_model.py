"""Generates tokens by a language model of a GGUF file on this processor, and prints how many a second.

python examples/language_model.py [model.gguf] [number of tokens]

Without a file: by a small Llama with random weights in Q4_0, which is compared with eager mode.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

import tuner.torch


def write_random(path: Path, hidden: int, layers: int, vocabulary: int, kind: str = "Q4_0") -> None:
    """Writes a GGUF file of a Llama with random weights and heads of 64; the head shares the embeddings."""
    rng = np.random.default_rng(0)
    inner, heads = hidden * 11 // 4, hidden // 64
    keys = hidden // 2  # half as many heads for keys and values
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("none")
    writer.add_vocab_size(vocabulary)
    writer.add_context_length(2048)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(inner)
    writer.add_block_count(layers)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads // 2)
    writer.add_rope_dimension_count(64)
    writer.add_layer_norm_rms_eps(1e-5)

    def add(name: str, rows: int, columns: int, deviation: float) -> None:
        numbers = rng.standard_normal((rows, columns), np.float32) * np.float32(deviation)
        type_ = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(f"{name}.weight", gguf.quantize(numbers, type_), raw_dtype=type_)

    shapes = {
        "attn_q": (hidden, hidden),
        "attn_k": (keys, hidden),
        "attn_v": (keys, hidden),
        "attn_output": (hidden, hidden),
        "ffn_gate": (inner, hidden),
        "ffn_up": (inner, hidden),
        "ffn_down": (hidden, inner),
    }
    add("token_embd", vocabulary, hidden, 1.0)
    for layer in range(layers):
        for name, (rows, columns) in shapes.items():
            add(f"blk.{layer}.{name}", rows, columns, columns**-0.5)
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", np.ones(hidden, np.float32))
    writer.add_tensor("output_norm.weight", np.ones(hidden, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def generated(model: Any, prompt: torch.Tensor, count: int) -> tuple[torch.Tensor, float]:
    """Returns prompt and new tokens, and the seconds that ``generate`` took."""
    began = time.perf_counter()
    tokens = model.generate(
        prompt, max_new_tokens=count, min_new_tokens=count, do_sample=False, cache_implementation="static"
    )
    return tokens, time.perf_counter() - began


def main(path: Path, count: int) -> None:
    """Generates ``count`` tokens after a prompt of 16 random ones, and prints the speed."""
    torch.set_num_threads(1)
    model = tuner.torch.load_gguf(path)
    prompt = torch.randint(3, model.config.vocab_size, (1, 16), generator=torch.manual_seed(0))
    expected, eager_s = generated(model, prompt, count)

    model.forward = torch.compile(model.forward, backend="tuner")
    generated(model, prompt, count)  # compiles programs of the prompt and of one token
    tokens, tuner_s = generated(model, prompt, count)
    print(f"{count / tuner_s:.1f} tokens a second, in eager mode {count / eager_s:.1f}")
    print("right" if torch.equal(tokens, expected) else "wrong")


if __name__ == "__main__":
    if sys.argv[1:]:
        main(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 32)
    else:
        with tempfile.TemporaryDirectory() as folder:
            write_random(Path(folder) / "model.gguf", hidden=256, layers=2, vocabulary=1024)
            main(Path(folder) / "model.gguf", 16)
