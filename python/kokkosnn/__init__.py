# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""KokkosNN for Python: operators of neural networks on arrays of NumPy, PyTorch, JAX and all that speak DLPack.

Arrays of any strides are read and written where they are; results are arrays of the input's kind. All operators take
float64, float32, float16 and bfloat16 (in NumPy by ml_dtypes). Wrong arguments are a ValueError with the library's
message, and nothing is written. kokkosnn.torch has PyTorch's operators with gradients, and modules.
"""

import json as _json

from . import _core
from ._operators import (
    Mask,
    add,
    add_layer_norm,
    add_layer_norm_backward,
    add_rms_norm,
    add_rms_norm_backward,
    attention,
    attention_backward,
    cast,
    column_sums,
    cross_entropy,
    cross_entropy_backward,
    cross_entropy_from_lse,
    cross_entropy_with_gradient,
    geglu,
    geglu_backward,
    gelu,
    gelu_backward,
    layer_norm,
    layer_norm_backward,
    log_softmax,
    log_softmax_backward,
    logsumexp,
    logsumexp_backward,
    masked_log_softmax,
    masked_log_softmax_backward,
    masked_logsumexp,
    masked_softmax,
    masked_softmax_backward,
    masked_softmax_bias_backward,
    masked_softmax_sinks_backward,
    matmul,
    mul,
    rms_norm,
    rms_norm_backward,
    rope,
    rope_backward,
    segmented_log_softmax,
    segmented_log_softmax_backward,
    segmented_logsumexp,
    segmented_logsumexp_backward,
    segmented_softmax,
    segmented_softmax_backward,
    silu,
    silu_backward,
    soft_cross_entropy,
    soft_cross_entropy_with_gradient,
    softmax,
    softmax_backward,
    swiglu,
    swiglu_backward,
)

__version__ = _core.version()


def configuration() -> dict[str, str]:
    """What this build is: version, kokkos (its version), backend (OpenMP, Cuda, HIP, ...), compiler."""
    return _json.loads(_core.configuration())


__all__ = [
    "Mask",
    "add",
    "add_layer_norm",
    "add_layer_norm_backward",
    "add_rms_norm",
    "add_rms_norm_backward",
    "attention",
    "attention_backward",
    "cast",
    "column_sums",
    "configuration",
    "cross_entropy",
    "cross_entropy_backward",
    "cross_entropy_from_lse",
    "cross_entropy_with_gradient",
    "geglu",
    "geglu_backward",
    "gelu",
    "gelu_backward",
    "layer_norm",
    "layer_norm_backward",
    "log_softmax",
    "log_softmax_backward",
    "logsumexp",
    "logsumexp_backward",
    "masked_log_softmax",
    "masked_log_softmax_backward",
    "masked_logsumexp",
    "masked_softmax",
    "masked_softmax_backward",
    "masked_softmax_bias_backward",
    "masked_softmax_sinks_backward",
    "matmul",
    "mul",
    "rms_norm",
    "rms_norm_backward",
    "rope",
    "rope_backward",
    "segmented_log_softmax",
    "segmented_log_softmax_backward",
    "segmented_logsumexp",
    "segmented_logsumexp_backward",
    "segmented_softmax",
    "segmented_softmax_backward",
    "silu",
    "silu_backward",
    "soft_cross_entropy",
    "soft_cross_entropy_with_gradient",
    "softmax",
    "softmax_backward",
    "swiglu",
    "swiglu_backward",
]
