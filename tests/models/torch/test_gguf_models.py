"""Models of GGUF files compute what llama.cpp defines, as programs with few-bit weights."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
gguf = pytest.importorskip("gguf", reason="gguf is not installed")

import tuner.torch  # noqa: E402
from tests.models.torch import small_llama  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402
from tuner.core.fusions import QUANTIZED  # noqa: E402
from tuner.mlir.fusions.facts import facts_of  # noqa: E402
from tuner.models.fusions.pipeline import FormedProgram, fuse_program  # noqa: E402
from tuner.models.quantized.gguf_files import GROUPED, GgufFile  # noqa: E402
from tuner.models.torch.export import export_module  # noqa: E402
from tuner.models.torch.gguf_models import fill_from_gguf  # noqa: E402

pytestmark = pytest.mark.mlir
IDS = torch.tensor([5, 17, 3, 80, 41, 41, 9, 95])
HEAD = 1  # quantized matmul, next to those of the layers


def filled(
    path: Path, architecture: str = "llama", dtype: Any = torch.float32, *, rounds_x: bool = False
) -> Any:
    with torch.device("meta"):
        model = small_llama.Llama(has_bias=architecture == "qwen2")
    fill_from_gguf(model, GgufFile(path), architecture, dtype, rounds_x=rounds_x)
    return model


def formats(model: Any) -> set[str]:
    """Returns the formats of the weights of a model's fusions, one fusion for each matrix."""
    formed = fuse_program(export_module(model, (IDS,)).text)
    assert isinstance(formed, FormedProgram)
    fusions = [fusion for fusion in formed.program.fusions if fusion.kind == QUANTIZED]
    assert len(fusions) == len(small_llama.SHAPES) * small_llama.LAYERS + HEAD
    return {facts_of(fusion.text).weights_format for fusion in fusions}


def require_near(found: Any, expected: Any, limit: float) -> None:
    """Requires logits to be right to ``limit`` of the greatest one."""
    error = np.abs(found.double().numpy() - expected).max() / np.abs(expected).max()
    assert error <= limit


KINDS = {
    "Q4_0": "i4-g32-f16",
    "Q4_1": "i4-g32-f16",
    "Q5_0": "i8-g32-f16",
    "Q5_1": "i8-g32-f16",
    "Q8_0": "i8-g32-f16",
    "Q4_K": "i4-g32-f32",
    "Q5_K": "i8-g32-f32",
    "Q6_K": "i8-g16-f32",
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_a_file_is_right_and_its_program_multiplies_few_bit_weights(
    kind: str, tmp_path: Path
) -> None:
    weights = small_llama.write_model(tmp_path / "model.gguf", kind)
    expected = small_llama.by_llama_cpp(weights, IDS.numpy(), pairs_rows=True)
    model = filled(tmp_path / "model.gguf")
    require_near(model(IDS), expected, 1e-5)
    program = tuner.torch.compile(model, (IDS,))
    require_near(program(IDS), expected, 1e-5)
    assert formats(model) == {KINDS[kind]}


def test_each_type_of_integers_has_a_format_here() -> None:
    assert KINDS.keys() == GROUPED.keys()


@pytest.mark.parametrize("kind", GROUPED)
def test_blocks_have_the_numbers_that_gguf_computes(kind: str, tmp_path: Path) -> None:
    weights = small_llama.write_model(tmp_path / "model.gguf", kind)
    weight = GgufFile(tmp_path / "model.gguf").grouped("blk.1.ffn_down.weight")
    groups = weight.integers.reshape(*weight.scales.shape, -1)
    found = groups * weight.scales.astype(np.float64)[..., None]
    if weight.offsets is not None:
        found += weight.offsets.astype(np.float64)[..., None]
    expected = weights["blk.1.ffn_down.weight"]
    np.testing.assert_allclose(
        found.reshape(expected.shape), expected, rtol=0, atol=3e-7 * abs(expected).max()
    )


def test_rows_of_qwen2_are_as_in_the_file_and_have_biases(tmp_path: Path) -> None:
    weights = small_llama.write_model(tmp_path / "model.gguf", "Q8_0", "qwen2", has_head=True)
    expected = small_llama.by_llama_cpp(weights, IDS.numpy(), pairs_rows=False)
    require_near(filled(tmp_path / "model.gguf", "qwen2")(IDS), expected, 1e-5)


def test_activations_of_bf16_are_multiplied_by_the_same_integers(tmp_path: Path) -> None:
    weights = small_llama.write_model(tmp_path / "model.gguf", "Q4_0")
    expected = small_llama.by_llama_cpp(weights, IDS.numpy(), pairs_rows=True)
    model = filled(tmp_path / "model.gguf", dtype=torch.bfloat16)
    program = tuner.torch.compile(model, (IDS,))
    require_near(program(IDS), expected, 0.03)
    assert formats(model) == {"i4-g32-f16"}


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("kind", "expected"),
    [("Q4_0", "i4-g32-f16-a8group"), ("Q4_K", "i4-g32-f32-a8group"), ("Q6_K", KINDS["Q6_K"])],
)
def test_rows_are_rounded_to_i8_where_that_is_asked_for(kind: str, expected: str, tmp_path: Path) -> None:
    weights = small_llama.write_model(tmp_path / "model.gguf", kind)
    model = filled(tmp_path / "model.gguf", rounds_x=True)
    program = tuner.torch.compile(model, (IDS,))
    require_near(program(IDS), small_llama.by_llama_cpp(weights, IDS.numpy(), pairs_rows=True), 0.02)
    require_near(program(IDS), model(IDS).double().numpy(), 1e-3)
    assert formats(model) == {expected}


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_weights_that_are_floats_are_parameters(kind: str, tmp_path: Path) -> None:
    weights = small_llama.write_model(tmp_path / "model.gguf", kind)
    expected = small_llama.by_llama_cpp(weights, IDS.numpy(), pairs_rows=True)
    model = filled(tmp_path / "model.gguf")
    require_near(model(IDS), expected, 1e-5)
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_a_head_of_another_type_is_a_float_with_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    weights = small_llama.write_model(file, "Q4_K", has_head=True, head_kind="IQ4_NL")
    with pytest.warns(UserWarning, match=r"weights of type IQ4_NL are held as float32: 1 tensors"):
        model = filled(file)
    expected = small_llama.by_llama_cpp(weights, IDS.numpy(), pairs_rows=True)
    require_near(model(IDS), expected, 1e-5)


def test_a_tied_head_holds_the_weights_of_the_embeddings(tmp_path: Path) -> None:
    small_llama.write_model(tmp_path / "model.gguf", "Q4_0")
    model = filled(tmp_path / "model.gguf")
    assert model.lm_head.groups is model.model.embed_tokens.groups
    held = sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers()))
    assert held < (tmp_path / "model.gguf").stat().st_size


def test_a_tensor_without_a_parameter_and_a_parameter_without_a_tensor_are_refused(tmp_path: Path) -> None:
    small_llama.write_model(tmp_path / "qwen2.gguf", "Q8_0", "qwen2")
    model = small_llama.Llama()
    with pytest.raises(UsageError, match=r"blk.0.attn_q.bias: the model has no such weight"):
        fill_from_gguf(model, GgufFile(tmp_path / "qwen2.gguf"), "qwen2", torch.float32)
    small_llama.write_model(tmp_path / "llama.gguf", "Q8_0")
    model = small_llama.Llama(has_bias=True)
    with pytest.raises(
        UsageError, match=r"blk.0.attn_q.bias is missing, for model.layers.0.self_attn.q_proj.b"
    ):
        fill_from_gguf(model, GgufFile(tmp_path / "llama.gguf"), "llama", torch.float32)


def _written(path: Path, architecture: str, **settings: Any) -> Path:
    """Writes a file without tensors but the embeddings, with a model's settings and ``settings``."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_embedding_length(64)
    writer.add_block_count(1)
    writer.add_head_count(2)
    for key, value in settings.items():
        writer.add_key_value(
            f"{architecture}.{key.replace('__', '.')}", value, gguf.GGUFValueType.get_type(value)
        )
    writer.add_tensor("token_embd.weight", np.zeros((8, 64), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_other_architectures_and_settings_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    with pytest.raises(UsageError, match=r"found architecture 'falcon', allowed llama, qwen2, qwen3"):
        tuner.torch.load_gguf(_written(tmp_path / "a.gguf", "falcon"))
    with pytest.raises(UsageError, match=r"llama.expert_count: found 8, which is not supported"):
        tuner.torch.load_gguf(_written(tmp_path / "b.gguf", "llama", expert_count=8))
    with pytest.raises(UsageError, match=r"rope.scaling.type: found 'yarn', which is not supported"):
        tuner.torch.load_gguf(_written(tmp_path / "c.gguf", "llama", rope__scaling__type="yarn"))
    with pytest.raises(UsageError, match=r"rope.dimension_count: found 16, allowed the size of a head, 32"):
        tuner.torch.load_gguf(_written(tmp_path / "d.gguf", "llama", rope__dimension_count=16))
    with pytest.raises(UsageError, match=r"activations: found 'i4', allowed i8"):
        tuner.torch.load_gguf(tmp_path / "a.gguf", activations="i4")
    with pytest.raises(UsageError, match=r"output_norm.weight is missing|blk.0.attn_q.weight is missing"):
        tuner.torch.load_gguf(_written(tmp_path / "e.gguf", "llama", expert_count=0))
    with pytest.raises(
        UsageError, match=r"dtype: found 'torch.float16', allowed torch.float32, torch.bfloat16"
    ):
        tuner.torch.load_gguf(tmp_path / "a.gguf", torch.float16)


def test_the_package_transformers_is_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_llama.write_model(tmp_path / "model.gguf", "Q4_0")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UsageError, match="the package transformers is missing; pip install transformers"):
        tuner.torch.load_gguf(tmp_path / "model.gguf")


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_the_model_of_transformers_has_the_logits_of_llama_cpp(architecture: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    weights = small_llama.write_model(tmp_path / "model.gguf", "Q4_0", architecture)
    model = tuner.torch.load_gguf(tmp_path / "model.gguf")
    with torch.no_grad():
        logits = model(IDS[None]).logits[0]
    require_near(
        logits, small_llama.by_llama_cpp(weights, IDS.numpy(), pairs_rows=architecture == "llama"), 1e-5
    )


@pytest.mark.slow
def test_tokens_of_the_back_end_are_those_of_eager_mode(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    small_llama.write_model(tmp_path / "model.gguf", "Q4_K")
    model = tuner.torch.load_gguf(tmp_path / "model.gguf")
    options = {"max_new_tokens": 8, "do_sample": False, "cache_implementation": "static"}
    with torch.no_grad():
        expected = model.generate(IDS[None], **options)
        tuner.torch.graph_counts(reset=True)
        model.forward = torch.compile(model.forward, backend="tuner")
        assert torch.equal(model.generate(IDS[None], **options), expected)
    counts = tuner.torch.graph_counts()
    assert counts.taken
    assert counts.left == 0, counts.reasons
