# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays of JAX, as of any library that speaks DLPack and whose arrays are not to be written."""

import jax
import jax.numpy as jnp
import kokkosnn
import numpy as np
import pytest


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16, jnp.bfloat16])
def test_results_are_arrays_of_jax(dtype):
    x = jax.random.normal(jax.random.key(0), (3, 5)).astype(dtype)
    y = kokkosnn.softmax(x)
    assert isinstance(y, jax.Array) and y.dtype == x.dtype
    tolerance = 1e-6 if dtype == jnp.float32 else 1e-2
    assert np.allclose(y.astype(jnp.float32), jax.nn.softmax(x.astype(jnp.float32)), atol=tolerance)
    loss, lse = kokkosnn.cross_entropy(x, jnp.array([0, 4, 1]))
    assert isinstance(loss, jax.Array) and lse.shape == (3,)


def test_arrays_of_jax_are_not_written():
    x = jnp.ones((2, 3))
    with pytest.raises(ValueError, match="cannot be written"):
        kokkosnn.softmax(x, out=x)
