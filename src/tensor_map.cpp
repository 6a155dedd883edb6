// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/tensor_map.hpp>

#include <Kokkos_Core.hpp>

#if defined(KOKKOS_ENABLE_CUDA)
#include <cuda.h>
#include <cuda_runtime.h>
#endif

#include <cstring>
#include <stdexcept>
#include <string>

// The driver makes the maps. Its function is asked for by name, so that nothing is linked with the driver's library.

namespace KokkosNN::Impl {

#if defined(KOKKOS_ENABLE_CUDA) && CUDART_VERSION >= 12000

namespace {

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                            const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

Encode find_encode() {
  constexpr const char* name = "cuTensorMapEncodeTiled";
  void* found                = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
  return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(found) : nullptr;
}

}  // namespace

TensorMap tensor_map(const std::string& label, const BoxedTensor& tensor) {
  static const Encode encode = find_encode();
  if (encode == nullptr) throw std::runtime_error(label + ": the driver has no cuTensorMapEncodeTiled");
  constexpr int rank = TensorMap::rank;
  cuuint64_t extents[rank], strides[rank - 1];
  cuuint32_t box[rank] = {cuuint32_t(tensor.box[0]), cuuint32_t(tensor.box[1]), 1, 1, 1}, ones[rank] = {1, 1, 1, 1, 1};
  for (int d = 0; d < rank; ++d) extents[d] = static_cast<cuuint64_t>(tensor.extent[d]);
  for (int d = 1; d < rank; ++d) {
    const bool counts = tensor.extent[d] > 1;
    strides[d - 1]    = counts ? static_cast<cuuint64_t>(tensor.stride[d]) * 2 : d > 1 ? strides[d - 2] : 16;
  }
  const auto type =
      tensor.type == ElementType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  CUtensorMap made;
  const CUresult error = encode(&made, type, rank, const_cast<void*>(tensor.data), extents, strides, box, ones,
                                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (error != CUDA_SUCCESS) {
    throw std::runtime_error(label + ": cuTensorMapEncodeTiled failed with " + std::to_string(int(error)));
  }
  static_assert(sizeof(TensorMap) == sizeof(CUtensorMap));
  TensorMap map;
  std::memcpy(map.word, &made, sizeof(map));
  return map;
}

#else

TensorMap tensor_map(const std::string& label, const BoxedTensor&) {
  throw std::runtime_error(label + ": tensor maps are CUDA's");
}

#endif

}  // namespace KokkosNN::Impl
