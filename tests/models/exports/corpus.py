"""All exports by name, and those that the tests compile unless ``--all-exports`` is given."""

from functools import cache

from tests.models.exports import attention, convolutions, elementwise, indexing, linear, networks, signatures
from tests.models.exports.export import Built, Export, build, exported_text

LISTED = (
    *(*linear.EXPORTS, *attention.EXPORTS, *convolutions.EXPORTS, *indexing.EXPORTS, *signatures.EXPORTS),
    *(*elementwise.EXPORTS, *elementwise.REDUCTIONS, *elementwise.NORMS),
    *(*networks.EXPORTS, *networks.RECURRENT),
)
EXPORTS: dict[str, Export] = {each.name: each for each in LISTED}
# One or two of each kind of computation; half a second each, most of which torch.export takes.
USUAL = (
    *("linear", "linear_of_a_vector", "linear_of_primes", "mlp_relu", "tied_embedding"),
    *("experts", "matmul_of_transposed_arguments", "addmm_scaled", "bmm_transposed", "matmul_broadcast"),
    *("einsum_heads", "outer_and_dot", "product_and_residual"),
    *("attention", "attention_causal", "attention_sdpa_causal", "attention_grouped_query"),
    *("attention_wide_mask", "attention_rotary", "attention_cached_at"),
    *("layer_norm", "rms_norm", "group_norm", "batch_norm_2d", "softmax", "softmax_of_columns"),
    *("log_softmax", "cross_entropy"),
    *("conv_1x1", "conv_3x3_of_a_batch", "conv_stride_2", "conv_dilated", "conv_grouped", "conv_depthwise"),
    "conv_single_pixel",
    *("conv_1d", "conv_transposed", "conv_batch_norm_relu", "max_pool", "average_pool_padded"),
    *("bilinear_upsampling", "cumulative_sum"),
    *("embedding", "index_select", "gather", "masked_fill", "concatenated", "split", "padded", "cropped"),
    *("sliced_in_steps", "permuted", "repeat_interleaved"),
    *("relu_family", "gelu", "silu_and_mish", "hard_activations", "exponentials", "sine_and_cosine"),
    *("powers", "comparisons", "casts", "integer_arithmetic"),
    *("sum_of_two_dims", "mean_of_two_dims", "argmax", "variance", "any_and_all"),
    *("scalar_tensor", "result_is_an_input", "several_results", "unused_input", "constant_result"),
    *("linear_bf16", "layer_norm_bf16", "linear_f16", "linear_f64", "matmul_i8", "dequantized_linear"),
    *("int_mm", "quantized_linear", "no_elements"),
    *("lstm_cell", "gru_cell", "encoder", "gpt2_step", "dlrm", "vit", "bert_layer", "llama", "mobilenet"),
)
# What is compiled as a whole by default, next to groups
WHOLE = ("mlp_relu", "attention_causal", "conv_stride_2", "embedding", "layer_norm_bf16", "argmax")
# What is simulated by default: half a second to three seconds each
SIMULATED = (
    *("linear_of_primes", "bmm_transposed", "attention_causal", "layer_norm", "conv_stride_2", "max_pool"),
    *("concatenated", "gelu", "argmax", "result_is_an_input", "linear_bf16", "matmul_i8", "lstm_cell"),
)
# What is simulated as a whole by default, next to groups
SIMULATED_WHOLE = ("bmm_transposed", "layer_norm", "conv_stride_2", "argmax")
# Not right on the simulated GPU so far
NOT_SIMULATED: frozenset[str] = frozenset()


@cache
def built(name: str) -> Built:
    return build(EXPORTS[name])


@cache
def text_of(name: str) -> str:
    made = built(name)
    return exported_text(made.module, made.inputs)
