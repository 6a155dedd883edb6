# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays of several libraries: their devices and streams, and new ones of the same kind."""

import sys

from ._core import are_numpy  # noqa: F401
from ._core import is_numpy as _is_own  # of NumPy's own class alone

# DLPack's numbers of devices, and the kinds that the library knows (kokkosnn_device_kind). Pinned and managed memory is
# its backend's.
_HOST, _CUDA, _CUDA_HOST, _ROCM, _ROCM_HOST, _CUDA_MANAGED = 1, 2, 3, 10, 11, 13
HOST = (_HOST, 0, 0)
"""A host as the place of a call."""
_KINDS = {_HOST: _HOST, _CUDA: _CUDA, _CUDA_MANAGED: _CUDA, _ROCM: _ROCM}


def _is_of(module, name, x):
    """x is an instance of a class of a module, which is not imported for the question."""
    module = sys.modules.get(module)
    return module is not None and isinstance(x, getattr(module, name))


def is_numpy(x):
    return _is_of("numpy", "ndarray", x)


def is_torch(x):
    return _is_of("torch", "Tensor", x)


def is_jax(x):
    return _is_of("jax", "Array", x)


def is_result(x):
    """x is a place for a result of XLA (_jax.py)."""
    return _is_of("kokkosnn._jax", "Result", x)


def is_traced(x):
    """x is of JAX and stands for values that are not there yet, or not on the host: XLA makes the call (_jax.py)."""
    if not is_jax(x):
        return False
    import jax

    return isinstance(x, jax.core.Tracer) or any(device.platform != "cpu" for device in x.devices())


def plain(x):
    """x as the library can take it: a tensor of PyTorch without its history."""
    return x.detach() if is_torch(x) and x.requires_grad else x


def _device_of(x):
    """(kind, index) of an array's memory; None where it is neither NumPy's nor speaks DLPack."""
    if is_numpy(x) or not hasattr(x, "__dlpack_device__"):
        return (_HOST, 0)
    kind, index = x.__dlpack_device__()
    kind, index = int(kind), int(index)
    return (_KINDS.get(kind, kind), index if kind != _HOST else 0)


def _handle_of(stream, x, kind):
    """The stream as a number: what is given, or PyTorch's current one for its tensors; 0 is the default stream."""
    if stream is None and is_torch(x) and kind != _HOST:
        import torch

        stream = torch.cuda.current_stream(x.device)
    if stream is None:
        return 0
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    return int(getattr(stream, "cuda_stream", stream))


def place_of(arrays, stream):
    """Where a call on these arrays runs: (kind, index, stream). They have to be in one place."""
    present = [x for x in arrays if x is not None]
    places = [_device_of(x) for x in present]
    if any(place != places[0] for place in places):
        raise ValueError(f"kokkosnn: all arrays must be on one device, but are on (DLPack's kind, index) {places}")
    return (*places[0], _handle_of(stream, present[0], places[0][0]))


def dtype_name(x):
    """The element type by NumPy's name: "float32", "bfloat16", ..."""
    return str(x.dtype).removeprefix("torch.") if is_torch(x) else getattr(x.dtype, "name", str(x.dtype))


def accumulator_name(x):
    """The type of sums over rows of x: "float64" of that, otherwise "float32"."""
    return "float64" if dtype_name(x) == "float64" else "float32"


def empty(like, shape, dtype=None):
    """An array of the same kind and device with these extents, the last axis fastest; dtype by its name, or as like's.

    Of JAX, whose arrays are not to be written, it is NumPy's, or where XLA makes the call a place for XLA's result;
    `as_kind` makes it one of JAX when it is filled.
    """
    if _is_own(like):
        return sys.modules["numpy"].empty(shape, dtype or like.dtype)
    if is_torch(like):
        torch = sys.modules["torch"]
        if dtype is None and shape == like.shape and like.is_contiguous():
            return torch.empty_like(like)  # in half of the time
        return torch.empty(shape, dtype=getattr(torch, dtype) if dtype else like.dtype, device=like.device)
    if is_traced(like):
        from ._jax import Result

        return Result(shape, dtype or like.dtype)
    if is_numpy(like) or is_jax(like):
        import numpy

        return numpy.empty(shape, dtype=dtype or like.dtype)
    library = like.__array_namespace__()
    return library.empty(shape, dtype=getattr(library, dtype) if dtype else like.dtype, device=like.device)


def as_kind(like, y):
    """A filled array from `empty` as one of the kind of `like`."""
    if _is_own(like):
        return y
    if is_jax(like) and not is_jax(y):
        if is_result(y):
            return y.array
        import jax.numpy

        return jax.numpy.asarray(y)
    return y


def require_writable(out):
    is_fixed = not out.flags.writeable if _is_own(out) or is_numpy(out) else is_jax(out)
    if is_fixed:
        raise ValueError("kokkosnn: out must not be an array that cannot be written")
