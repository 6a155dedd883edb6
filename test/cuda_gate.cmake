# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# What .ci/run changes of the CUDA build (CMAKE_PROJECT_KokkosNN_INCLUDE), once all targets are there: the same sources
# in fewer files. Nothing of it runs.
include(${CMAKE_CURRENT_LIST_DIR}/join_files.cmake)

function(kokkosnn_gate)
  kokkosnn_join_files()
  kokkosnn_join(
    KokkosNN
    "f64 gradients_f64 masked_f64 masked_gradients_f64 mask_sums_f64 segmented_f64 loss_sums_f64"
    "masked_values_f64 norm_f64 add_norm_f64 column_sums_f64 rope_f64 attention_f64 matmul_f64 elementwise_f64"
    "f32 gradients_f32 masked_f32 masked_gradients_f32 mask_sums_f32 segmented_f32 loss_sums_f32"
    "masked_values_f32 norm_f32 add_norm_f32 column_sums_f32 rope_f32 attention_f32 matmul_f32 elementwise_f32"
    "f16 gradients_f16 masked_f16 masked_gradients_f16 mask_sums_f16 segmented_f16"
    "masked_values_f16 norm_f16 add_norm_f16 column_sums_f16 rope_f16 attention_f16 matmul_f16 elementwise_f16"
    "bf16 gradients_bf16 masked_bf16 masked_gradients_bf16 mask_sums_bf16 segmented_bf16"
    "masked_values_bf16 norm_bf16 add_norm_bf16 column_sums_bf16 rope_bf16 attention_bf16 matmul_bf16 elementwise_bf16"
    "f32_to_f16 f16_to_f32 f32_to_bf16 bf16_to_f32")
endfunction()

cmake_language(DEFER CALL kokkosnn_gate)
