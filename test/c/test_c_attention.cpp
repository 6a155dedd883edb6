// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include <KokkosNN/attention.hpp>
#include <KokkosNN/attention_mask_gradients.hpp>
#include <KokkosNN/graph_attention.hpp>
#include <KokkosNN/matmul.hpp>
#include <KokkosNN/merge_attention.hpp>
#include <KokkosNN/packed_attention.hpp>
#include <KokkosNN/rope.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

// Attention, matrix products and the rotary embedding in C.

namespace KokkosNNTest {
namespace {

constexpr int batch = 2, heads = 4, kv_heads = 2, queries = 5, keys = 7, dim = 6, value_dim = 3;

template <class T>
class CFunctionsOfTransformers : public ::testing::Test {};
TYPED_TEST_SUITE(CFunctionsOfTransformers, ElementTypes, ElementNames);

TYPED_TEST(CFunctionsOfTransformers, OfAttentionEqualTheCppOnes) {
  using T           = TypeParam;
  using A           = KokkosNN::accumulator_t<T>;
  const auto q      = filled<T>(1, batch, heads, queries, dim);
  const auto k      = filled<T>(2, batch, kv_heads, keys, dim);
  const auto v      = filled<T>(3, batch, kv_heads, keys, value_dim);
  const auto o      = empty<T>(batch, heads, queries, value_dim);
  const auto dout   = filled<T>(4, batch, heads, queries, value_dim);
  const auto lse    = empty<A>(batch, heads, queries);
  const auto dq     = empty<T>(batch, heads, queries, dim);
  const auto dk     = empty<T>(batch, kv_heads, keys, dim);
  const auto dv     = empty<T>(batch, kv_heads, keys, value_dim);
  const auto bias   = filled<T>(5, queries, keys);
  const auto kept   = empty<bool>(queries, keys);
  const auto length = listed<std::int64_t>({6, 5});
  const auto slopes = filled<float>(6, heads);
  const auto sinks  = filled<float>(7, heads);
  Kokkos::deep_copy(kept, true);
  Kokkos::deep_copy(Kokkos::subview(kept, 2, 1), false);
  const auto masks = all_masks(kept, bias, length, slopes);
  const KokkosNN::AttentionOptions options{.scale     = 0.5,
                                           .softcap   = 30,
                                           .sinks     = sinks,
                                           .precision = KokkosNN::Precision::tensor_float32,
                                           .dropout   = {.probability = 0.25, .seed = 5, .offset = 2}};
  const kokkosnn_tensor cq = tensor(q), ck = tensor(k), cv = tensor(v), co = tensor(o), cdout = tensor(dout),
                        clse = tensor(lse), cdq = tensor(dq), cdk = tensor(dk), cdv = tensor(dv), cbias = tensor(bias),
                        ckept = tensor(kept), clengths = tensor(length), cslopes = tensor(slopes),
                        csinks     = tensor(sinks);
  const kokkosnn_mask mask         = all_masks(&ckept, &cbias, &clengths, &cslopes);
  kokkosnn_attention_options given = KOKKOSNN_ATTENTION_OPTIONS_INIT;
  given.scale                      = 0.5;
  given.softcap                    = 30;
  given.sinks                      = &csinks;
  given.precision                  = KOKKOSNN_PRECISION_TENSOR_FLOAT32;
  given.dropout_probability        = 0.25;
  given.dropout_seed               = 5;
  given.dropout_offset             = 2;
  Exec exec;

  expect_same(
      "attention without a mask", o, [&] { KokkosNN::attention(exec, q, k, v, o, KokkosNN::masks()); },
      [&] { return kokkosnn_attention(&here, &cq, &ck, &cv, &co, nullptr, nullptr, nullptr); });
  const auto cpp = [&] { KokkosNN::attention(exec, q, k, v, o, masks, options, lse); };
  const auto c   = [&] { return kokkosnn_attention(&here, &cq, &ck, &cv, &co, &mask, &clse, &given); };
  expect_same("attention's lse", lse, cpp, c);
  expect_same("attention", o, cpp, c);

  const auto cpp_backward = [&] {
    KokkosNN::attention_backward(exec, q, k, v, o, dout, lse, masks, dq, dk, dv, options);
  };
  const auto c_backward = [&] {
    return kokkosnn_attention_backward(&here, &cq, &ck, &cv, &co, &cdout, &clse, &mask, &cdq, &cdk, &cdv, &given);
  };
  expect_same("attention_backward's dq", dq, cpp_backward, c_backward);
  expect_same("attention_backward's dk", dk, cpp_backward, c_backward);
  expect_same("attention_backward's dv", dv, cpp_backward, c_backward);

  const auto dbias             = empty<T>(queries, keys);
  const auto dsinks            = empty<float>(heads);
  const kokkosnn_tensor cdbias = tensor(dbias), cdsinks = tensor(dsinks);
  expect_same(
      "attention_bias_backward", dbias,
      [&] { KokkosNN::attention_bias_backward(exec, q, k, v, o, dout, lse, masks, dbias, options); },
      [&] {
        return kokkosnn_attention_bias_backward(&here, &cq, &ck, &cv, &co, &cdout, &clse, &mask, &cdbias, &given);
      });
  expect_same(
      "attention_sinks_backward", dsinks,
      [&] { KokkosNN::attention_sinks_backward(exec, o, dout, lse, dsinks, options); },
      [&] { return kokkosnn_attention_sinks_backward(&here, &co, &cdout, &clse, &cdsinks, &given); });
}

TEST(CAttention, TakesBothOrdersOfTheAxes) {
  const auto q        = filled<float>(1, batch, heads, queries, dim);
  const auto k        = filled<float>(2, batch, heads, keys, dim);
  const auto v        = filled<float>(3, batch, heads, keys, value_dim);
  const auto o        = empty<float>(batch, heads, queries, value_dim);
  kokkosnn_tensor t[] = {tensor(q), tensor(k), tensor(v), tensor(o)};
  ASSERT_EQ(kokkosnn_attention(&here, &t[0], &t[1], &t[2], &t[3], nullptr, nullptr, nullptr), KOKKOSNN_SUCCESS)
      << kokkosnn_last_error();
  const std::string expected = bytes_of(o);
  Kokkos::deep_copy(o, 0.0f);
  Kokkos::fence();
  for (kokkosnn_tensor& each : t) {
    std::swap(each.extents[1], each.extents[2]);
    std::swap(each.strides[1], each.strides[2]);
  }
  kokkosnn_attention_options options = KOKKOSNN_ATTENTION_OPTIONS_INIT;
  options.axes                       = KOKKOSNN_BATCH_SEQUENCE_HEAD_DIM;
  ASSERT_EQ(kokkosnn_attention(&here, &t[0], &t[1], &t[2], &t[3], nullptr, nullptr, &options), KOKKOSNN_SUCCESS)
      << kokkosnn_last_error();
  EXPECT_EQ(bytes_of(o), expected);
}

TEST(CAttention, RefusesWhatTheCompilerRefusesOfViews) {
  const auto q             = filled<float>(1, batch, heads, queries, dim);
  const auto k             = filled<double>(2, batch, heads, keys, dim);
  const auto lse           = empty<double>(batch, heads, queries);
  const auto o             = empty<float>(batch, heads, queries, dim);
  const auto lengths       = listed<std::uint32_t>({1, 2});
  const kokkosnn_tensor cq = tensor(q), ck = tensor(k), clse = tensor(lse), co = tensor(o), clengths = tensor(lengths);
  const auto call = [&](const kokkosnn_tensor* q, const kokkosnn_tensor* k, const kokkosnn_mask* mask,
                        const kokkosnn_tensor* lse, const kokkosnn_attention_options* options) {
    return kokkosnn_attention(&here, q, k, &cq, &co, mask, lse, options);
  };
  expect_error(call(nullptr, &cq, nullptr, nullptr, nullptr), "KokkosNN::attention: q is missing");
  expect_error(call(&clse, &cq, nullptr, nullptr, nullptr), "KokkosNN::attention: q must have rank 4, but has rank 3");
  expect_error(call(&cq, &ck, nullptr, nullptr, nullptr), "KokkosNN::attention: k must hold f32, but holds f64");
  expect_error(call(&cq, &cq, nullptr, &clse, nullptr), "KokkosNN::attention: lse must hold f32, but holds f64");
  kokkosnn_mask mask = KOKKOSNN_MASK_INIT;
  mask.lengths       = &clengths;
  expect_error(call(&cq, &cq, &mask, nullptr, nullptr), "KokkosNN::attention: mask.lengths must hold i32 or i64");
  kokkosnn_attention_options options = KOKKOSNN_ATTENTION_OPTIONS_INIT;
  options.axes                       = 2;
  expect_error(call(&cq, &cq, nullptr, nullptr, &options), "KokkosNN::attention: axes must be 0 to 1, but is 2");
  options           = KOKKOSNN_ATTENTION_OPTIONS_INIT;
  options.precision = 3;
  expect_error(call(&cq, &cq, nullptr, nullptr, &options), "KokkosNN::attention: precision must be 0 to 2, but is 3");
  options       = KOKKOSNN_ATTENTION_OPTIONS_INIT;
  options.sinks = &clse;
  expect_error(call(&cq, &cq, nullptr, nullptr, &options),
               "KokkosNN::attention: options.sinks must have rank 1, but has rank 3");
  expect_error(kokkosnn_attention_backward(&here, &cq, &cq, &cq, &co, &co, nullptr, nullptr, &cq, &cq, &cq, nullptr),
               "KokkosNN::attention_backward: lse is missing");
}

TYPED_TEST(CFunctionsOfTransformers, OfPackedAttentionEqualTheCppOnes) {
  using T                  = TypeParam;
  using A                  = KokkosNN::accumulator_t<T>;
  const auto q             = filled<T>(1, 9, heads, dim);
  const auto k             = filled<T>(2, 11, kv_heads, dim);
  const auto v             = filled<T>(3, 11, kv_heads, value_dim);
  const auto o             = empty<T>(9, heads, value_dim);
  const auto dout          = filled<T>(4, 9, heads, value_dim);
  const auto lse           = empty<A>(9, heads);
  const auto dq            = empty<T>(9, heads, dim);
  const auto dk            = empty<T>(11, kv_heads, dim);
  const auto dv            = empty<T>(11, kv_heads, value_dim);
  const auto query_offsets = listed<std::int32_t>({0, 4, 9});
  const auto key_offsets   = listed<std::int64_t>({0, 6, 11});
  const kokkosnn_tensor cq = tensor(q), ck = tensor(k), cv = tensor(v), co = tensor(o), cdout = tensor(dout),
                        clse = tensor(lse), cdq = tensor(dq), cdk = tensor(dk), cdv = tensor(dv),
                        cquery_offsets = tensor(query_offsets), ckey_offsets = tensor(key_offsets);
  const KokkosNN::CausalMask causal;
  const KokkosNN::AttentionOptions options{.scale = 0.5, .diagonal = KokkosNN::AttentionDiagonal::last};
  kokkosnn_mask mask               = KOKKOSNN_MASK_INIT;
  mask.is_causal                   = 1;
  kokkosnn_attention_options given = KOKKOSNN_ATTENTION_OPTIONS_INIT;
  given.scale                      = 0.5;
  given.diagonal                   = KOKKOSNN_DIAGONAL_LAST;
  Exec exec;
  const auto cpp = [&] {
    KokkosNN::packed_attention(exec, q, k, v, query_offsets, key_offsets, o, causal, options, lse);
  };
  const auto c = [&] {
    return kokkosnn_packed_attention(&here, &cq, &ck, &cv, &cquery_offsets, &ckey_offsets, &co, &mask, &clse, &given);
  };
  expect_same("packed_attention's lse", lse, cpp, c);
  expect_same("packed_attention", o, cpp, c);
  const auto cpp_backward = [&] {
    KokkosNN::packed_attention_backward(exec, q, k, v, query_offsets, key_offsets, o, dout, lse, causal, dq, dk, dv,
                                        options);
  };
  const auto c_backward = [&] {
    return kokkosnn_packed_attention_backward(&here, &cq, &ck, &cv, &cquery_offsets, &ckey_offsets, &co, &cdout, &clse,
                                              &mask, &cdq, &cdk, &cdv, &given);
  };
  expect_same("packed_attention_backward's dq", dq, cpp_backward, c_backward);
  expect_same("packed_attention_backward's dk", dk, cpp_backward, c_backward);
  expect_same("packed_attention_backward's dv", dv, cpp_backward, c_backward);
  const auto of_8_bits             = listed<std::int8_t>({0, 4, 9});
  const kokkosnn_tensor cof_8_bits = tensor(of_8_bits);
  expect_error(
      kokkosnn_packed_attention(&here, &cq, &ck, &cv, &cof_8_bits, &ckey_offsets, &co, nullptr, nullptr, nullptr),
      "KokkosNN::packed_attention: query_offsets must hold i32 or i64");
  expect_error(kokkosnn_packed_attention(&here, &cq, &ck, &cv, &ckey_offsets, nullptr, &co, nullptr, nullptr, nullptr),
               "KokkosNN::packed_attention: key_offsets is missing");
}

TYPED_TEST(CFunctionsOfTransformers, OfAttentionOverAGraphEqualTheCppOnes) {
  using T                  = TypeParam;
  using A                  = KokkosNN::accumulator_t<T>;
  const auto q             = filled<T>(1, 3, heads, dim);
  const auto k             = filled<T>(2, 4, kv_heads, dim);
  const auto v             = filled<T>(3, 4, kv_heads, value_dim);
  const auto o             = empty<T>(3, heads, value_dim);
  const auto dout          = filled<T>(4, 3, heads, value_dim);
  const auto lse           = empty<A>(3, heads);
  const auto dq            = empty<T>(3, heads, dim);
  const auto dk            = empty<T>(4, kv_heads, dim);
  const auto dv            = empty<T>(4, kv_heads, value_dim);
  const auto bias          = filled<float>(5, 6, heads);
  const auto dbias         = empty<float>(6, heads);
  const auto row_map       = listed<std::int64_t>({0, 2, 3, 6});
  const auto entries       = listed<std::int32_t>({3, 1, 0, 1, -1, 2});
  const kokkosnn_tensor cq = tensor(q), ck = tensor(k), cv = tensor(v), co = tensor(o), cdout = tensor(dout),
                        clse = tensor(lse), cdq = tensor(dq), cdk = tensor(dk), cdv = tensor(dv), cbias = tensor(bias),
                        cdbias = tensor(dbias), crow_map = tensor(row_map), centries = tensor(entries);
  const KokkosNN::AttentionOptions options{.scale = 0.5, .softcap = 3};
  kokkosnn_attention_options given = KOKKOSNN_ATTENTION_OPTIONS_INIT;
  given.scale                      = 0.5;
  given.softcap                    = 3;
  Exec exec;
  const auto cpp = [&] { KokkosNN::graph_attention(exec, q, k, v, row_map, entries, o, options, bias, lse); };
  const auto c   = [&] {
    return kokkosnn_graph_attention(&here, &cq, &ck, &cv, &crow_map, &centries, &cbias, &co, &clse, &given);
  };
  expect_same("graph_attention's lse", lse, cpp, c);
  expect_same("graph_attention", o, cpp, c);
  const auto cpp_backward = [&] {
    KokkosNN::graph_attention_backward(exec, q, k, v, row_map, entries, o, dout, lse, dq, dk, dv, options, bias, dbias);
  };
  const auto c_backward = [&] {
    return kokkosnn_graph_attention_backward(&here, &cq, &ck, &cv, &crow_map, &centries, &cbias, &co, &cdout, &clse,
                                             &cdq, &cdk, &cdv, &cdbias, &given);
  };
  expect_same("graph_attention_backward's dq", dq, cpp_backward, c_backward);
  expect_same("graph_attention_backward's dk", dk, cpp_backward, c_backward);
  expect_same("graph_attention_backward's dv", dv, cpp_backward, c_backward);
  expect_same("graph_attention_backward's dbias", dbias, cpp_backward, c_backward);
  expect_error(kokkosnn_graph_attention(&here, &cq, &ck, &cv, &crow_map, &centries, &cq, &co, nullptr, nullptr),
               "KokkosNN::graph_attention: bias must have rank 2, but has rank 3");
}

TYPED_TEST(CFunctionsOfTransformers, OfMergedAttentionEqualTheCppOnes) {
  using T                      = TypeParam;
  using A                      = KokkosNN::accumulator_t<T>;
  const auto parts             = filled<T>(1, 3, 9, heads, dim);
  const auto sums              = filled<A>(2, 3, 9, heads, dim);
  const auto lse_parts         = filled<A>(3, 3, 9, heads);
  const auto o                 = empty<T>(9, heads, dim);
  const auto lse               = empty<A>(9, heads);
  const kokkosnn_tensor cparts = tensor(parts), csums = tensor(sums), clse_parts = tensor(lse_parts), co = tensor(o),
                        clse = tensor(lse);
  Exec exec;
  const auto cpp = [&] { KokkosNN::merge_attention(exec, parts, lse_parts, o, {}, lse); };
  const auto c   = [&] { return kokkosnn_merge_attention(&here, &cparts, &clse_parts, &co, &clse, nullptr); };
  expect_same("merge_attention's lse", lse, cpp, c);
  expect_same("merge_attention", o, cpp, c);
  expect_same(
      "merge_attention of sums", o, [&] { KokkosNN::merge_attention(exec, sums, lse_parts, o); },
      [&] { return kokkosnn_merge_attention(&here, &csums, &clse_parts, &co, nullptr, nullptr); });
  expect_error(kokkosnn_merge_attention(&here, &cparts, &clse, &co, nullptr, nullptr),
               "KokkosNN::merge_attention: lse_parts must have rank 3, but has rank 2");
}

TYPED_TEST(CFunctionsOfTransformers, OfMatrixProductsEqualTheCppOnes) {
  using T                  = TypeParam;
  const auto a             = filled<T>(1, batch, 5, 9);
  const auto b             = filled<T>(2, 9, 7);
  const auto c             = empty<T>(batch, 5, 7);
  const kokkosnn_tensor ca = tensor(a), cb = tensor(b), cc = tensor(c);
  kokkosnn_matmul_options given = KOKKOSNN_MATMUL_OPTIONS_INIT;
  given.alpha                   = 0.5;
  given.beta                    = 2;
  Exec exec;

  expect_same(
      "matmul", c, [&] { KokkosNN::matmul(exec, a, b, c); },
      [&] { return kokkosnn_matmul(&here, &ca, &cb, &cc, nullptr); });
  expect_same(
      "matmul with factors", c,
      [&] {
        Kokkos::deep_copy(exec, c, T(1));
        KokkosNN::matmul(exec, a, b, c, {.alpha = 0.5, .beta = 2});
      },
      [&] {
        Kokkos::deep_copy(c, T(1));
        Kokkos::fence();
        return kokkosnn_matmul(&here, &ca, &cb, &cc, &given);
      });
  given.alpha = 0;
  expect_same(
      "matmul with a factor of 0", c,
      [&] {
        Kokkos::deep_copy(exec, c, T(1));
        KokkosNN::matmul(exec, a, b, c, {.alpha = 0, .beta = 2});
      },
      [&] {
        Kokkos::deep_copy(c, T(1));
        Kokkos::fence();
        return kokkosnn_matmul(&here, &ca, &cb, &cc, &given);
      });
}

TYPED_TEST(CFunctionsOfTransformers, OfProductsOfGatheredAndSummedRowsEqualTheCppOnes) {
  using T      = TypeParam;
  const auto a = filled<T>(1, 5, 9), b = filled<T>(2, 9, 7);
  const auto c = empty<T>(4, 7), sums = empty<T>(3, 7);
  const Kokkos::View<std::int32_t*, Exec> rows("rows", 4);
  const Kokkos::View<std::int64_t*, Exec> offsets("offsets", 4);
  const auto host = Kokkos::create_mirror_view(rows);
  for (int i = 0; i < 4; ++i) host(i) = 4 - i;
  Kokkos::deep_copy(rows, host);
  const auto host_offsets = Kokkos::create_mirror_view(offsets);
  for (int i = 0; i < 4; ++i) host_offsets(i) = i == 0 ? 0 : i + 1;
  Kokkos::deep_copy(offsets, host_offsets);
  const kokkosnn_tensor ca = tensor(a), cb = tensor(b), cc = tensor(c), csums = tensor(sums), crows = tensor(rows),
                        coffsets = tensor(offsets);
  kokkosnn_matmul_options given  = KOKKOSNN_MATMUL_OPTIONS_INIT;
  given.rows                     = &crows;
  Exec exec;
  expect_same(
      "gathered", c, [&] { KokkosNN::matmul(exec, KokkosNN::GatheredRows{a, rows}, b, c); },
      [&] { return kokkosnn_matmul(&here, &ca, &cb, &cc, &given); });
  given.row_offsets = &coffsets;
  expect_same(
      "summed", sums,
      [&] { KokkosNN::matmul(exec, KokkosNN::GatheredRows{a, rows}, b, KokkosNN::SummedRows{sums, offsets}); },
      [&] { return kokkosnn_matmul(&here, &ca, &cb, &csums, &given); });
  expect_error(kokkosnn_matmul_backward(&here, &cc, &ca, &cb, nullptr, nullptr, &given),
               "KokkosNN::matmul_backward: rows and row_offsets must be null: gradients have none");
  given.row_offsets = &ca;
  expect_error(kokkosnn_matmul(&here, &ca, &cb, &csums, &given),
               std::string("KokkosNN::matmul: row_offsets must hold integers, but holds ") +
                   KokkosNN::to_string(KokkosNN::Impl::element_type<T>()));
}

TYPED_TEST(CFunctionsOfTransformers, OfMatrixProductsGradientsEqualTheCppOnes) {
  using T                  = TypeParam;
  const auto a             = filled<T>(1, batch, 5, 9);
  const auto b             = filled<T>(2, 9, 7);
  const auto dc            = filled<T>(3, batch, 5, 7);
  const auto da            = empty<T>(batch, 5, 9);
  const auto db            = empty<T>(9, 7);
  const kokkosnn_tensor ca = tensor(a), cb = tensor(b), cdc = tensor(dc), cda = tensor(da), cdb = tensor(db);
  Exec exec;
  expect_same(
      "da", da, [&] { KokkosNN::matmul_backward(exec, dc, a, b, da, db); },
      [&] { return kokkosnn_matmul_backward(&here, &cdc, &ca, &cb, &cda, &cdb, nullptr); });
  expect_same(
      "db alone", db, [&] { KokkosNN::matmul_backward(exec, dc, a, b, KokkosNN::no_view, db); },
      [&] { return kokkosnn_matmul_backward(&here, &cdc, &ca, &cb, nullptr, &cdb, nullptr); });
  expect_error(kokkosnn_matmul_backward(&here, &cdc, &ca, &cb, &cdb, nullptr, nullptr),
               "KokkosNN::matmul_backward: da of extents (9, 7) must have those of a, (2, 5, 9)");
}

TEST(CMatmul, RefusesWhatTheCompilerRefusesOfViews) {
  const auto a             = filled<float>(1, 5, 5);
  const auto doubles       = filled<double>(1, 5, 5);
  const auto c             = empty<float>(5, 5);
  const auto row           = empty<float>(5);
  const kokkosnn_tensor ca = tensor(a), cdoubles = tensor(doubles), cc = tensor(c), crow = tensor(row);
  expect_error(kokkosnn_matmul(&here, &ca, &crow, &cc, nullptr),
               "KokkosNN::matmul: b must have rank 2, but has rank 1");
  expect_error(kokkosnn_matmul(&here, &ca, &cdoubles, &cc, nullptr),
               "KokkosNN::matmul: b must hold f32, but holds f64");
  expect_error(kokkosnn_matmul(&here, &ca, &ca, &cdoubles, nullptr),
               "KokkosNN::matmul: c must hold f32, but holds f64");
  kokkosnn_matmul_options options = KOKKOSNN_MATMUL_OPTIONS_INIT;
  options.precision               = 3;
  expect_error(kokkosnn_matmul(&here, &ca, &ca, &cc, &options), "KokkosNN::matmul: precision must be 0 to 2, but is 3");
  options          = KOKKOSNN_MATMUL_OPTIONS_INIT;
  options.provider = 3;
  expect_error(kokkosnn_matmul(&here, &ca, &ca, &cc, &options), "KokkosNN::matmul: provider must be 0 to 2, but is 3");
}

TYPED_TEST(CFunctionsOfTransformers, OfTheRotaryEmbeddingEqualTheCppOnes) {
  using T              = TypeParam;
  using A              = KokkosNN::accumulator_t<T>;
  const auto x         = filled<T>(1, batch, queries, heads, 8);
  const auto y         = empty<T>(batch, queries, heads, 8);
  const auto cos       = filled<A>(2, 9, 3);
  const auto sin       = filled<A>(3, 9, 3);
  const auto positions = listed<int>({4, 0, 1, 7, 2});
  const KokkosNN::RopeOptions options{.form            = KokkosNN::RopeForm::interleaved,
                                      .rotary_dims     = 6,
                                      .position_offset = 1,
                                      .theta           = 500,
                                      .position_scale  = 0.5};
  kokkosnn_rope_options given           = KOKKOSNN_ROPE_OPTIONS_INIT;
  given.form                            = KOKKOSNN_ROPE_INTERLEAVED;
  given.rotary_dims                     = 6;
  given.position_offset                 = 1;
  given.theta                           = 500;
  given.position_scale                  = 0.5;
  const KokkosNN::RopeOptions by_tables = {.rotary_dims = 6, .check_positions = true};
  kokkosnn_rope_options given_tables    = KOKKOSNN_ROPE_OPTIONS_INIT;
  given_tables.rotary_dims              = 6;
  given_tables.check_positions          = 1;
  const kokkosnn_tensor cx = tensor(x), cy = tensor(y), ccos = tensor(cos), csin = tensor(sin),
                        cpositions = tensor(positions);
  Exec exec;

  expect_same(
      "rope", y, [&] { KokkosNN::rope(exec, x, y, options); },
      [&] { return kokkosnn_rope(&here, &cx, nullptr, nullptr, &cy, nullptr, &given); });
  expect_same(
      "rope by tables", y, [&] { KokkosNN::rope(exec, x, cos, sin, y, by_tables, positions); },
      [&] { return kokkosnn_rope(&here, &cx, &ccos, &csin, &cy, &cpositions, &given_tables); });
  expect_same(
      "rope_backward", y, [&] { KokkosNN::rope_backward(exec, x, y, options, positions); },
      [&] { return kokkosnn_rope_backward(&here, &cx, nullptr, nullptr, &cy, &cpositions, &given); });
}

TEST(CRope, RefusesWhatTheCompilerRefusesOfViews) {
  const auto x             = filled<float>(1, queries, heads, 8);
  const auto table         = filled<float>(2, 9, 4);
  const auto doubles       = filled<double>(2, 9, 4);
  const auto unsigned_ones = listed<std::uint32_t>({0, 1, 2, 3, 4});
  const kokkosnn_tensor cx = tensor(x), ctable = tensor(table), cdoubles = tensor(doubles),
                        cpositions = tensor(unsigned_ones);
  expect_error(kokkosnn_rope(&here, &cx, &ctable, nullptr, &cx, nullptr, nullptr),
               "KokkosNN::rope: sin is missing beside the other table");
  expect_error(kokkosnn_rope(&here, &cx, &ctable, &cdoubles, &cx, nullptr, nullptr),
               "KokkosNN::rope: sin must hold f32, but holds f64");
  expect_error(kokkosnn_rope(&here, &cx, nullptr, nullptr, &cx, &cpositions, nullptr),
               "KokkosNN::rope: positions must hold i32 or i64");
  expect_error(kokkosnn_rope_backward(&here, &cpositions, nullptr, nullptr, &cx, nullptr, nullptr),
               "KokkosNN::rope_backward: dy must hold f64, f32, f16 or bf16, but holds u32");
}

}  // namespace
}  // namespace KokkosNNTest
