# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Calls that XLA makes: the C functions as targets of its foreign function interface.

An operator on traced arrays gets places for its results from `_arrays.empty`, and `_operators._run` hands the call to
`call`, which fills them. So every function of kokkosnn is one of JAX, too, under jit and on a GPU.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy

from . import _core


class Result:
    """The place of a result: its extents, its type, and the array when the call is made."""

    def __init__(self, shape: Sequence[int], dtype: Any):
        self.shape, self.dtype, self.array = tuple(shape), jax.numpy.dtype(dtype), None


@functools.lru_cache(maxsize=None)
def _require_handlers() -> None:
    platform, handlers = _core.jax_handlers()
    if not handlers:
        raise NotImplementedError("kokkosnn: this build has no handlers for JAX; python/README.md says how to get them")
    for name, handler in handlers.items():
        jax.ffi.register_ffi_target(f"kokkosnn.{name}", handler, platform=platform)


def _attribute(value: Any) -> Any:
    """A number as an attribute; a seed of 64 bits has the same bits."""
    if isinstance(value, (float, numpy.floating)):
        return numpy.float64(value)
    return numpy.int64(int(value) - 2**64 if value >= 2**63 else value)


def call(name: str, stream: Any, arguments: Sequence[Any]) -> None:
    """Makes a C function's call by XLA; jax.cpp says what its attributes are."""
    _require_handlers()
    if stream is not None:
        raise ValueError(f"kokkosnn.{name}: XLA chooses the stream of a call that it makes")
    inputs, results, attributes = [], [], {}

    def place(x: Any) -> Any:
        (results if isinstance(x, Result) else inputs).append(x)
        return numpy.int64(-len(results) if isinstance(x, Result) else len(inputs) - 1)

    for k, given in enumerate(arguments):
        if isinstance(given, dict):
            for member, value in given.items():
                if isinstance(value, (bool, int, float, numpy.generic)):
                    attributes[f"a{k}_{member}"] = _attribute(value)
                else:
                    attributes[f"t{k}_{member}"] = place(value)
        elif given is not None:
            attributes[f"a{k}"] = place(given)
    types = [jax.ShapeDtypeStruct(result.shape, result.dtype) for result in results]
    function = jax.ffi.ffi_call(f"kokkosnn.{name}", types, vmap_method="sequential")
    for result, array in zip(results, function(*inputs, **attributes)):
        result.array = array
