// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/kokkosnn.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

// The operators of rows in C, and the C interface itself: arguments, options, places, threads.

namespace KokkosNNTest {
namespace {

constexpr int heads = 2, queries = 5, keys = 7;

template <class T>
class CFunctions : public ::testing::Test {};
TYPED_TEST_SUITE(CFunctions, ElementTypes, ElementNames);

TYPED_TEST(CFunctions, OfTheSoftmaxFamilyEqualTheCppOnes) {
  using T           = TypeParam;
  const auto x      = filled<T>(1, heads, queries, keys);
  const auto y      = filled<T>(2, heads, queries, keys);
  const auto dy     = filled<T>(3, heads, queries, keys);
  const auto out    = empty<T>(heads, queries, keys);
  const auto lse    = filled<T>(4, heads, keys);
  const auto dlse   = filled<T>(5, heads, keys);
  const auto to_lse = empty<T>(heads, keys);
  const KokkosNN::SoftmaxOptions options{.axis = 1, .scale = 0.75};
  kokkosnn_softmax_options given = KOKKOSNN_SOFTMAX_OPTIONS_INIT;
  given.axis                     = 1;
  given.scale                    = 0.75;
  const kokkosnn_tensor cx = tensor(x), cy = tensor(y), cdy = tensor(dy), cout = tensor(out), clse = tensor(lse),
                        cdlse = tensor(dlse), cto_lse = tensor(to_lse);
  Exec exec;

  expect_same(
      "softmax", out, [&] { KokkosNN::softmax(exec, x, out, options); },
      [&] { return kokkosnn_softmax(&here, &cx, &cout, &given); });
  expect_same(
      "log_softmax", out, [&] { KokkosNN::log_softmax(exec, x, out, options); },
      [&] { return kokkosnn_log_softmax(&here, &cx, &cout, &given); });
  expect_same(
      "logsumexp", to_lse, [&] { KokkosNN::logsumexp(exec, x, to_lse, options); },
      [&] { return kokkosnn_logsumexp(&here, &cx, &cto_lse, &given); });
  expect_same(
      "softmax_backward", out, [&] { KokkosNN::softmax_backward(exec, y, dy, out, options); },
      [&] { return kokkosnn_softmax_backward(&here, &cy, &cdy, &cout, &given); });
  expect_same(
      "log_softmax_backward", out, [&] { KokkosNN::log_softmax_backward(exec, y, dy, out, options); },
      [&] { return kokkosnn_log_softmax_backward(&here, &cy, &cdy, &cout, &given); });
  expect_same(
      "logsumexp_backward", out, [&] { KokkosNN::logsumexp_backward(exec, x, lse, dlse, out, options); },
      [&] { return kokkosnn_logsumexp_backward(&here, &cx, &clse, &cdlse, &cout, &given); });
}

TYPED_TEST(CFunctions, OfMasksEqualTheCppOnes) {
  using T            = TypeParam;
  const auto x       = filled<T>(1, heads, queries, keys);
  const auto y       = filled<T>(2, heads, queries, keys);
  const auto dy      = filled<T>(3, heads, queries, keys);
  const auto out     = empty<T>(heads, queries, keys);
  const auto bias    = filled<T>(4, queries, keys);
  const auto dbias   = empty<T>(queries, keys);
  const auto dsinks  = empty<T>(heads);
  const auto kept    = empty<bool>(queries, keys);
  const auto sinks   = filled<float>(6, heads);
  const auto slopes  = filled<float>(7, heads);
  const auto length  = listed<std::int64_t>({6, 5});
  const auto offsets = listed<std::int32_t>({1, -1});
  const auto scales  = filled<float>(8, heads, queries);
  Kokkos::deep_copy(kept, true);
  Kokkos::deep_copy(Kokkos::subview(kept, 2, 1), false);
  const auto masks =
      all_masks(kept, bias, length, slopes, KokkosNN::DiagonalOffsets{offsets}, KokkosNN::RowScales{scales});
  const KokkosNN::MaskedSoftmaxOptions options{.scale = 0.5, .softcap = 30, .sinks = sinks};
  const kokkosnn_tensor cx = tensor(x), cy = tensor(y), cdy = tensor(dy), cout = tensor(out), ckept = tensor(kept),
                        cbias = tensor(bias), clengths = tensor(length), cslopes = tensor(slopes),
                        coffsets = tensor(offsets), cscales = tensor(scales), csinks = tensor(sinks),
                        cdbias = tensor(dbias), cdsinks = tensor(dsinks);
  kokkosnn_mask mask                    = all_masks(&ckept, &cbias, &clengths, &cslopes);
  mask.diagonal_offsets                 = &coffsets;
  mask.row_scales                       = &cscales;
  kokkosnn_masked_softmax_options given = KOKKOSNN_MASKED_SOFTMAX_OPTIONS_INIT;
  given.scale                           = 0.5;
  given.softcap                         = 30;
  given.sinks                           = &csinks;
  Exec exec;

  expect_same(
      "masked_softmax", out, [&] { KokkosNN::masked_softmax(exec, x, masks, out, options); },
      [&] { return kokkosnn_masked_softmax(&here, &cx, &mask, &cout, &given); });
  expect_same(
      "masked_softmax without a mask", out, [&] { KokkosNN::masked_softmax(exec, x, KokkosNN::masks(), out); },
      [&] { return kokkosnn_masked_softmax(&here, &cx, nullptr, &cout, nullptr); });
  const auto lse             = empty<T>(heads, queries);
  const kokkosnn_tensor clse = tensor(lse);
  expect_same(
      "masked_log_softmax", out, [&] { KokkosNN::masked_log_softmax(exec, x, masks, out, options); },
      [&] { return kokkosnn_masked_log_softmax(&here, &cx, &mask, &cout, &given); });
  expect_same(
      "masked_logsumexp", lse, [&] { KokkosNN::masked_logsumexp(exec, x, masks, lse, options); },
      [&] { return kokkosnn_masked_logsumexp(&here, &cx, &mask, &clse, &given); });
  expect_same(
      "masked_log_softmax_backward", out,
      [&] { KokkosNN::masked_log_softmax_backward(exec, x, y, dy, masks, out, options); },
      [&] { return kokkosnn_masked_log_softmax_backward(&here, &cx, &cy, &cdy, &mask, &cout, &given); });
  expect_same(
      "masked_softmax_backward", out, [&] { KokkosNN::masked_softmax_backward(exec, x, y, dy, masks, out, options); },
      [&] { return kokkosnn_masked_softmax_backward(&here, &cx, &cy, &cdy, &mask, &cout, &given); });
  expect_same(
      "masked_softmax_bias_backward", dbias, [&] { KokkosNN::masked_softmax_bias_backward(exec, y, dy, masks, dbias); },
      [&] { return kokkosnn_masked_softmax_bias_backward(&here, &cy, &cdy, &mask, &cdbias); });
  expect_same(
      "masked_softmax_sinks_backward", dsinks,
      [&] { KokkosNN::masked_softmax_sinks_backward(exec, y, dy, masks, dsinks); },
      [&] { return kokkosnn_masked_softmax_sinks_backward(&here, &cy, &cdy, &mask, &cdsinks); });
}

TYPED_TEST(CFunctions, OfCrossEntropyEqualTheCppOnes) {
  using T            = TypeParam;
  using A            = KokkosNN::accumulator_t<T>;
  const auto logits  = filled<T>(1, queries, keys);
  const auto dlogits = empty<T>(queries, keys);
  const auto labels  = listed<std::uint32_t>({1, 6, 0, 3, 3});
  const auto lse     = filled<A>(2, queries);
  const auto to_lse  = empty<A>(queries);
  const auto losses  = empty<A>(queries);
  const auto weights = listed<A>({A(1), A(2), A(0.5), A(1), A(1), A(3), A(1)});
  const auto loss    = empty<A>();
  const auto dloss   = filled<A>(3);

  const auto label_logits = filled<A>(5, queries);
  const auto predicted    = empty<std::int32_t>(queries);
  const KokkosNN::CrossEntropyOptions of_lse{.z_loss = 0.25, .weighted_z_loss = false, .classes = keys};
  kokkosnn_cross_entropy_options cof_lse = KOKKOSNN_CROSS_ENTROPY_OPTIONS_INIT;
  cof_lse.z_loss                         = 0.25;
  cof_lse.weighted_z_loss                = 0;
  cof_lse.classes                        = keys;
  const KokkosNN::CrossEntropyOptions options{.ignore_index    = 3,
                                              .reduction       = KokkosNN::Reduction::sum,
                                              .label_smoothing = 0.125,
                                              .z_loss          = 0.25,
                                              .softcap         = 20,
                                              .gradient_scale  = 2};
  kokkosnn_cross_entropy_options given = KOKKOSNN_CROSS_ENTROPY_OPTIONS_INIT;
  given.ignore_index                   = 3;
  given.reduction                      = KOKKOSNN_REDUCTION_SUM;
  given.label_smoothing                = 0.125;
  given.z_loss                         = 0.25;
  given.softcap                        = 20;
  given.gradient_scale                 = 2;
  kokkosnn_cross_entropy_options each  = KOKKOSNN_CROSS_ENTROPY_OPTIONS_INIT;
  each.reduction                       = KOKKOSNN_REDUCTION_NONE;
  const kokkosnn_tensor clogits = tensor(logits), cdlogits = tensor(dlogits), clabels = tensor(labels),
                        clse = tensor(lse), cto_lse = tensor(to_lse), closses = tensor(losses),
                        cweights = tensor(weights), closs = tensor(loss), cdloss = tensor(dloss),
                        cpredicted = tensor(predicted), clabel_logits = tensor(label_logits);
  Exec exec;

  expect_same(
      "cross_entropy", loss, [&] { KokkosNN::cross_entropy(exec, logits, labels, loss, options, to_lse, weights); },
      [&] { return kokkosnn_cross_entropy(&here, &clogits, &clabels, &closs, &cto_lse, &cweights, nullptr, &given); });
  expect_same(
      "the lse of cross_entropy", to_lse,
      [&] { KokkosNN::cross_entropy(exec, logits, labels, loss, options, to_lse, weights); },
      [&] { return kokkosnn_cross_entropy(&here, &clogits, &clabels, &closs, &cto_lse, &cweights, nullptr, &given); });
  expect_same(
      "the classes that cross_entropy predicts", predicted,
      [&] { KokkosNN::cross_entropy(exec, logits, labels, loss, options, to_lse, weights, predicted); },
      [&] {
        return kokkosnn_cross_entropy(&here, &clogits, &clabels, &closs, &cto_lse, &cweights, &cpredicted, &given);
      });
  expect_same(
      "cross_entropy_from_lse", loss,
      [&] { KokkosNN::cross_entropy_from_lse(exec, lse, label_logits, labels, loss, of_lse, weights); },
      [&] {
        return kokkosnn_cross_entropy_from_lse(&here, &clse, &clabel_logits, &clabels, &closs, &cweights, &cof_lse);
      });
  const auto targets  = filled<T>(6, queries, keys);
  const auto ctargets = tensor(targets);
  const KokkosNN::SoftCrossEntropyOptions soft{
      .reduction = KokkosNN::Reduction::sum, .label_smoothing = 0.125, .gradient_scale = 2};
  kokkosnn_soft_cross_entropy_options csoft = KOKKOSNN_SOFT_CROSS_ENTROPY_OPTIONS_INIT;
  csoft.reduction                           = KOKKOSNN_REDUCTION_SUM;
  csoft.label_smoothing                     = 0.125;
  csoft.gradient_scale                      = 2;
  expect_same(
      "soft_cross_entropy", loss,
      [&] { KokkosNN::soft_cross_entropy(exec, logits, targets, loss, soft, to_lse, weights); },
      [&] { return kokkosnn_soft_cross_entropy(&here, &clogits, &ctargets, &closs, &cto_lse, &cweights, &csoft); });
  expect_same(
      "soft_cross_entropy_with_gradient", dlogits,
      [&] { KokkosNN::soft_cross_entropy_with_gradient(exec, logits, targets, loss, dlogits, soft, to_lse, weights); },
      [&] {
        return kokkosnn_soft_cross_entropy_with_gradient(&here, &clogits, &ctargets, &closs, &cdlogits, &cto_lse,
                                                         &cweights, &csoft);
      });
  expect_same(
      "cross_entropy of each row", losses,
      [&] { KokkosNN::cross_entropy(exec, logits, labels, losses, {.reduction = KokkosNN::Reduction::none}); },
      [&] { return kokkosnn_cross_entropy(&here, &clogits, &clabels, &closses, nullptr, nullptr, nullptr, &each); });
  each.axis         = 0;
  const auto first  = filled<T>(4, keys, queries);
  const auto cfirst = tensor(first);
  expect_same(
      "cross_entropy along the first axis", losses,
      [&] {
        KokkosNN::cross_entropy(exec, first, labels, losses, {.axis = 0, .reduction = KokkosNN::Reduction::none});
      },
      [&] { return kokkosnn_cross_entropy(&here, &cfirst, &clabels, &closses, nullptr, nullptr, nullptr, &each); });
  expect_same(
      "cross_entropy_backward", dlogits,
      [&] { KokkosNN::cross_entropy_backward(exec, logits, labels, lse, dloss, dlogits, options, weights); },
      [&] {
        return kokkosnn_cross_entropy_backward(&here, &clogits, &clabels, &clse, &cdloss, &cdlogits, &cweights, &given);
      });
  const auto cpp = [&] {
    KokkosNN::cross_entropy_with_gradient(exec, logits, labels, loss, dlogits, options, to_lse, weights);
  };
  const auto c = [&] {
    return kokkosnn_cross_entropy_with_gradient(&here, &clogits, &clabels, &closs, &cdlogits, &cto_lse, &cweights,
                                                nullptr, &given);
  };
  expect_same("cross_entropy_with_gradient's loss", loss, cpp, c);
  expect_same("cross_entropy_with_gradient's gradient", dlogits, cpp, c);
}

TYPED_TEST(CFunctions, OfNormsEqualTheCppOnes) {
  using T            = TypeParam;
  using A            = KokkosNN::accumulator_t<T>;
  const auto x       = filled<T>(1, queries, keys);
  const auto dy      = filled<T>(2, queries, keys);
  const auto out     = empty<T>(queries, keys);
  const auto weight  = filled<A>(3, keys);
  const auto bias    = filled<A>(4, keys);
  const auto mean    = filled<A>(5, queries);
  const auto rstd    = filled<A>(6, queries);
  const auto to_rstd = empty<A>(queries);
  const auto to_mean = empty<A>(queries);
  const KokkosNN::RmsNormOptions rms{.epsilon = 0.5, .weight_offset = 1};
  const KokkosNN::LayerNormOptions layer{.epsilon = 0.5};
  kokkosnn_rms_norm_options given_rms     = KOKKOSNN_RMS_NORM_OPTIONS_INIT;
  given_rms.epsilon                       = 0.5;
  given_rms.weight_offset                 = 1;
  kokkosnn_layer_norm_options given_layer = KOKKOSNN_LAYER_NORM_OPTIONS_INIT;
  given_layer.epsilon                     = 0.5;
  const kokkosnn_tensor cx = tensor(x), cdy = tensor(dy), cout = tensor(out), cweight = tensor(weight),
                        cbias = tensor(bias), cmean = tensor(mean), crstd = tensor(rstd), cto_rstd = tensor(to_rstd),
                        cto_mean = tensor(to_mean);
  Exec exec;

  const auto cpp_rms = [&] { KokkosNN::rms_norm(exec, x, weight, out, to_rstd, rms); };
  const auto c_rms   = [&] { return kokkosnn_rms_norm(&here, &cx, &cweight, &cout, &cto_rstd, &given_rms); };
  expect_same("rms_norm", out, cpp_rms, c_rms);
  expect_same("rms_norm's rstd", to_rstd, cpp_rms, c_rms);
  expect_same(
      "rms_norm without a weight", out, [&] { KokkosNN::rms_norm(exec, x, KokkosNN::no_view, out); },
      [&] { return kokkosnn_rms_norm(&here, &cx, nullptr, &cout, nullptr, nullptr); });
  const auto cpp_layer = [&] { KokkosNN::layer_norm(exec, x, weight, bias, out, to_mean, to_rstd, layer); };
  const auto c_layer   = [&] {
    return kokkosnn_layer_norm(&here, &cx, &cweight, &cbias, &cout, &cto_mean, &cto_rstd, &given_layer);
  };
  expect_same("layer_norm", out, cpp_layer, c_layer);
  expect_same("layer_norm's mean", to_mean, cpp_layer, c_layer);
  expect_same(
      "rms_norm_backward", out, [&] { KokkosNN::rms_norm_backward(exec, x, weight, rstd, dy, out, rms); },
      [&] { return kokkosnn_rms_norm_backward(&here, &cx, &cweight, &crstd, &cdy, &cout, nullptr, &given_rms); });
  expect_same(
      "layer_norm_backward", out, [&] { KokkosNN::layer_norm_backward(exec, x, weight, mean, rstd, dy, out, layer); },
      [&] {
        return kokkosnn_layer_norm_backward(&here, &cx, &cweight, &cmean, &crstd, &cdy, &cout, nullptr, nullptr,
                                            &given_layer);
      });

  const auto dweight             = empty<A>(keys);
  const auto dbias               = empty<A>(keys);
  const kokkosnn_tensor cdweight = tensor(dweight), cdbias = tensor(dbias);
  const auto cpp_layer_backward = [&] {
    KokkosNN::layer_norm_backward(exec, x, weight, mean, rstd, dy, out, dweight, dbias, layer);
  };
  const auto c_layer_backward = [&] {
    return kokkosnn_layer_norm_backward(&here, &cx, &cweight, &cmean, &crstd, &cdy, &cout, &cdweight, &cdbias,
                                        &given_layer);
  };
  expect_same("layer_norm_backward's dweight", dweight, cpp_layer_backward, c_layer_backward);
  expect_same("layer_norm_backward's dbias", dbias, cpp_layer_backward, c_layer_backward);
  expect_same(
      "rms_norm_backward's dweight", dweight,
      [&] { KokkosNN::rms_norm_backward(exec, x, weight, rstd, dy, out, dweight, rms); },
      [&] { return kokkosnn_rms_norm_backward(&here, &cx, &cweight, &crstd, &cdy, &cout, &cdweight, &given_rms); });
}

TYPED_TEST(CFunctions, OfNormsWithResidualsEqualTheCppOnes) {
  using T                  = TypeParam;
  using A                  = KokkosNN::accumulator_t<T>;
  const auto x             = filled<T>(1, queries, keys);
  const auto residual      = filled<T>(2, queries, keys);
  const auto dy            = filled<T>(3, queries, keys);
  const auto out           = empty<T>(queries, keys);
  const auto sum           = empty<T>(queries, keys);
  const auto weight        = filled<A>(4, keys);
  const auto bias          = filled<A>(5, keys);
  const auto dweight       = empty<A>(keys);
  const auto dbias         = empty<A>(keys);
  const auto mean          = filled<A>(6, queries);
  const auto rstd          = filled<A>(7, queries);
  const auto to_mean       = empty<A>(queries);
  const auto to_rstd       = empty<A>(queries);
  const kokkosnn_tensor cx = tensor(x), cresidual = tensor(residual), cdy = tensor(dy), cout = tensor(out),
                        csum = tensor(sum), cweight = tensor(weight), cbias = tensor(bias), cdweight = tensor(dweight),
                        cdbias = tensor(dbias), cmean = tensor(mean), crstd = tensor(rstd), cto_mean = tensor(to_mean),
                        cto_rstd = tensor(to_rstd);
  Exec exec;

  const auto cpp_rms = [&] { KokkosNN::add_rms_norm(exec, x, residual, weight, out, sum, to_rstd); };
  const auto c_rms   = [&] {
    return kokkosnn_add_rms_norm(&here, &cx, &cresidual, &cweight, &cout, &csum, &cto_rstd, nullptr);
  };
  expect_same("add_rms_norm", out, cpp_rms, c_rms);
  expect_same("add_rms_norm's sum", sum, cpp_rms, c_rms);
  expect_same("add_rms_norm's rstd", to_rstd, cpp_rms, c_rms);

  const auto cpp_layer = [&] { KokkosNN::add_layer_norm(exec, x, residual, weight, bias, out, sum, to_mean, to_rstd); };
  const auto c_layer   = [&] {
    return kokkosnn_add_layer_norm(&here, &cx, &cresidual, &cweight, &cbias, &cout, &csum, &cto_mean, &cto_rstd,
                                   nullptr);
  };
  expect_same("add_layer_norm", out, cpp_layer, c_layer);
  expect_same("add_layer_norm's sum", sum, cpp_layer, c_layer);
  expect_same("add_layer_norm's mean", to_mean, cpp_layer, c_layer);

  const auto cpp_rms_backward = [&] {
    KokkosNN::add_rms_norm_backward(exec, x, weight, rstd, dy, residual, out, dweight);
  };
  const auto c_rms_backward = [&] {
    return kokkosnn_add_rms_norm_backward(&here, &cx, &cweight, &crstd, &cdy, &cresidual, &cout, &cdweight, nullptr);
  };
  expect_same("add_rms_norm_backward", out, cpp_rms_backward, c_rms_backward);
  expect_same("add_rms_norm_backward's dweight", dweight, cpp_rms_backward, c_rms_backward);

  const auto cpp_layer_backward = [&] {
    KokkosNN::add_layer_norm_backward(exec, x, weight, mean, rstd, dy, residual, out, dweight, dbias);
  };
  const auto c_layer_backward = [&] {
    return kokkosnn_add_layer_norm_backward(&here, &cx, &cweight, &cmean, &crstd, &cdy, &cresidual, &cout, &cdweight,
                                            &cdbias, nullptr);
  };
  expect_same("add_layer_norm_backward", out, cpp_layer_backward, c_layer_backward);
  expect_same("add_layer_norm_backward's dbias", dbias, cpp_layer_backward, c_layer_backward);
}

TYPED_TEST(CFunctions, OfRaggedRowsEqualTheCppOnes) {
  using T           = TypeParam;
  constexpr int n   = 9;
  const auto x      = filled<T>(1, n);
  const auto y      = filled<T>(2, n);
  const auto dy     = filled<T>(3, n);
  const auto out    = empty<T>(n);
  const auto lse    = empty<T>(3);
  const auto starts = listed<int>({0, 4, 4, 9});
  const KokkosNN::SegmentedOptions options{.scale = 0.5, .check_offsets = true};
  kokkosnn_segmented_options given = KOKKOSNN_SEGMENTED_OPTIONS_INIT;
  given.scale                      = 0.5;
  given.check_offsets              = 1;
  const kokkosnn_tensor cx = tensor(x), cy = tensor(y), cdy = tensor(dy), cout = tensor(out), clse = tensor(lse),
                        cstarts = tensor(starts);
  Exec exec;

  expect_same(
      "segmented_softmax", out, [&] { KokkosNN::segmented_softmax(exec, x, starts, out, options); },
      [&] { return kokkosnn_segmented_softmax(&here, &cx, &cstarts, &cout, &given); });
  expect_same(
      "segmented_log_softmax", out, [&] { KokkosNN::segmented_log_softmax(exec, x, starts, out, options); },
      [&] { return kokkosnn_segmented_log_softmax(&here, &cx, &cstarts, &cout, &given); });
  expect_same(
      "segmented_logsumexp", lse, [&] { KokkosNN::segmented_logsumexp(exec, x, starts, lse, options); },
      [&] { return kokkosnn_segmented_logsumexp(&here, &cx, &cstarts, &clse, &given); });
  expect_same(
      "segmented_softmax_backward", out,
      [&] { KokkosNN::segmented_softmax_backward(exec, y, dy, starts, out, options); },
      [&] { return kokkosnn_segmented_softmax_backward(&here, &cy, &cdy, &cstarts, &cout, &given); });
  expect_same(
      "segmented_log_softmax_backward", out,
      [&] { KokkosNN::segmented_log_softmax_backward(exec, y, dy, starts, out, options); },
      [&] { return kokkosnn_segmented_log_softmax_backward(&here, &cy, &cdy, &cstarts, &cout, &given); });
}

TYPED_TEST(CFunctions, OfRowsByAnIndexEqualTheCppOnes) {
  using T           = TypeParam;
  constexpr int n   = 9;
  const auto x      = filled<T>(1, n);
  const auto y      = filled<T>(2, n);
  const auto dy     = filled<T>(3, n);
  const auto out    = empty<T>(n);
  const auto lse    = filled<T>(4, 3);
  const auto to_lse = empty<T>(3);
  const auto dlse   = filled<T>(5, 3);
  const auto rows   = listed<int>({2, 0, 0, 2, 1, 2, 0, 2, 0});
  const KokkosNN::SegmentIndex index{rows, 3};
  const KokkosNN::SegmentedOptions options{.scale = 0.5, .check_offsets = true};
  kokkosnn_segmented_options given = KOKKOSNN_SEGMENTED_OPTIONS_INIT;
  given.scale                      = 0.5;
  given.check_offsets              = 1;
  given.segments                   = 3;
  const kokkosnn_tensor cx = tensor(x), cy = tensor(y), cdy = tensor(dy), cout = tensor(out), clse = tensor(lse),
                        cto_lse = tensor(to_lse), cdlse = tensor(dlse), crows = tensor(rows);
  Exec exec;

  expect_same(
      "segmented_softmax", out, [&] { KokkosNN::segmented_softmax(exec, x, index, out, options); },
      [&] { return kokkosnn_segmented_softmax(&here, &cx, &crows, &cout, &given); });
  expect_same(
      "segmented_logsumexp", to_lse, [&] { KokkosNN::segmented_logsumexp(exec, x, index, to_lse, options); },
      [&] { return kokkosnn_segmented_logsumexp(&here, &cx, &crows, &cto_lse, &given); });
  expect_same(
      "segmented_log_softmax_backward", out,
      [&] { KokkosNN::segmented_log_softmax_backward(exec, y, dy, index, out, options); },
      [&] { return kokkosnn_segmented_log_softmax_backward(&here, &cy, &cdy, &crows, &cout, &given); });
  expect_same(
      "segmented_logsumexp_backward", out,
      [&] { KokkosNN::segmented_logsumexp_backward(exec, x, lse, dlse, index, out, options); },
      [&] { return kokkosnn_segmented_logsumexp_backward(&here, &cx, &clse, &cdlse, &crows, &cout, &given); });
  given.segments = 2;
  expect_error(kokkosnn_segmented_softmax(&here, &cx, &crows, &cout, &given),
               "KokkosNN::segmented_softmax: index must be from 0 to 1, segments being 2, but element 0 has 2");
}

TYPED_TEST(CFunctions, OfTheGradientOfRaggedLogsumexpEqualsTheCppOne) {
  using T                  = TypeParam;
  constexpr int n          = 9;
  const auto x             = filled<T>(1, n);
  const auto out           = empty<T>(n);
  const auto lse           = filled<T>(2, 3);
  const auto dlse          = filled<T>(3, 3);
  const auto starts        = listed<int>({0, 4, 4, 9});
  const kokkosnn_tensor cx = tensor(x), cout = tensor(out), clse = tensor(lse), cdlse = tensor(dlse),
                        cstarts = tensor(starts);
  Exec exec;
  expect_same(
      "segmented_logsumexp_backward", out,
      [&] { KokkosNN::segmented_logsumexp_backward(exec, x, lse, dlse, starts, out); },
      [&] { return kokkosnn_segmented_logsumexp_backward(&here, &cx, &clse, &cdlse, &cstarts, &cout, nullptr); });
  expect_error(kokkosnn_segmented_logsumexp_backward(&here, &cx, &cx, &cdlse, &cstarts, &cout, nullptr),
               "KokkosNN::segmented_logsumexp_backward: lse must have 3 elements as there are rows, but has 9");
}

/// From a 16-bit type to float and back, which the library holds compiled besides.
TEST(CInterface, HasThePairsOfTypesThatTheLibraryHasCompiled) {
  const auto x             = filled<Half>(1, queries, keys);
  const auto wide          = empty<float>(queries, keys);
  const auto short_lse     = empty<BHalf>(queries);
  const kokkosnn_tensor cx = tensor(x), cwide = tensor(wide), clse = tensor(short_lse);
  Exec exec;

  expect_same(
      "softmax to float", wide, [&] { KokkosNN::softmax(exec, x, wide); },
      [&] { return kokkosnn_softmax(&here, &cx, &cwide, nullptr); });
  Kokkos::deep_copy(wide, 1.5f);
  expect_same(
      "logsumexp to bfloat16", short_lse, [&] { KokkosNN::logsumexp(exec, wide, short_lse); },
      [&] { return kokkosnn_logsumexp(&here, &cwide, &clse, nullptr); });
}

TEST(CInterface, TakesStridesOfAnySign) {
  const auto x        = filled<float>(1, queries, keys);
  const auto y        = empty<float>(queries, keys);
  const auto reversed = empty<float>(queries, keys);
  kokkosnn_tensor cx = tensor(x), cy = tensor(y), creversed = tensor(reversed);
  ASSERT_EQ(kokkosnn_softmax(&here, &cx, &cy, nullptr), KOKKOSNN_SUCCESS) << kokkosnn_last_error();
  for (kokkosnn_tensor* t : {&cx, &creversed}) {  // row 0 is the last one
    t->data       = static_cast<float*>(t->data) + (queries - 1) * keys;
    t->strides[0] = -keys;
  }
  ASSERT_EQ(kokkosnn_softmax(&here, &cx, &creversed, nullptr), KOKKOSNN_SUCCESS) << kokkosnn_last_error();
  EXPECT_EQ(bytes_of(reversed), bytes_of(y));

  cx.strides[0] = 0;  // each row is x's last one
  ASSERT_EQ(kokkosnn_softmax(&here, &cx, &creversed, nullptr), KOKKOSNN_SUCCESS) << kokkosnn_last_error();
  const std::string rows = bytes_of(reversed);
  EXPECT_EQ(rows.substr(0, sizeof(float) * keys), rows.substr(sizeof(float) * keys, sizeof(float) * keys));
}

TEST(CInterface, RefusesWhatTheCompilerRefusesOfViews) {
  const auto x             = filled<float>(1, queries, keys);
  const auto y             = empty<float>(queries, keys);
  const auto a_row         = empty<float>(queries);
  const auto doubles       = empty<double>(queries);
  const auto wide_y        = empty<double>(queries, keys);
  const auto labels        = listed<std::int64_t>({0, 0, 0, 0, 0});
  const kokkosnn_tensor cx = tensor(x), cy = tensor(y), ca_row = tensor(a_row), cdoubles = tensor(doubles),
                        cwide_y = tensor(wide_y), clabels = tensor(labels);

  expect_error(kokkosnn_softmax(&here, nullptr, &cy, nullptr), "KokkosNN::softmax: x is missing");
  expect_error(kokkosnn_softmax(&here, &cx, &ca_row, nullptr), "KokkosNN::softmax: y must have rank 2, but has rank 1");
  expect_error(kokkosnn_logsumexp(&here, &cx, &cy, nullptr),
               "KokkosNN::logsumexp: lse must have rank 1, but has rank 2");
  expect_error(kokkosnn_softmax(&here, &cx, &cwide_y, nullptr), "KokkosNN::softmax: y must hold f32, but holds f64");
  expect_error(kokkosnn_softmax(&here, &clabels, &cy, nullptr),
               "KokkosNN::softmax: x must hold f64, f32, f16 or bf16, but holds i64");
  expect_error(kokkosnn_rms_norm(&here, &cx, nullptr, &cy, &cdoubles, nullptr),
               "KokkosNN::rms_norm: rstd must hold f32, but holds f64");
  expect_error(kokkosnn_cross_entropy(&here, &cx, &ca_row, &ca_row, nullptr, nullptr, nullptr, nullptr),
               "KokkosNN::cross_entropy: labels must hold integers, but holds f32");
  expect_error(kokkosnn_masked_softmax(&here, &ca_row, nullptr, &ca_row, nullptr),
               "KokkosNN::masked_softmax: x must have rank 2 to 8, but has rank 1");
  kokkosnn_mask mask = KOKKOSNN_MASK_INIT;
  mask.lengths       = &ca_row;
  expect_error(kokkosnn_masked_softmax(&here, &cx, &mask, &cy, nullptr),
               "KokkosNN::masked_softmax: mask.lengths must hold integers, but holds f32");
  expect_error(kokkosnn_segmented_softmax(&here, &cx, &ca_row, &cy, nullptr),
               "KokkosNN::segmented_softmax: row_offsets must hold integers, but holds f32");
}

TEST(CInterface, RefusesTensorsThatAreNone) {
  const auto x             = filled<float>(1, queries, keys);
  const kokkosnn_tensor cx = tensor(x);
  kokkosnn_tensor wrong    = cx;
  wrong.dtype              = 0;
  expect_error(kokkosnn_softmax(&here, &wrong, &cx, nullptr), "KokkosNN::softmax: x has the dtype 0, which is none");
  wrong      = cx;
  wrong.rank = 9;
  expect_error(kokkosnn_softmax(&here, &wrong, &cx, nullptr),
               "KokkosNN::softmax: x must have rank 0 to 8, but has rank 9");
  wrong            = cx;
  wrong.extents[1] = -1;
  expect_error(kokkosnn_softmax(&here, &wrong, &cx, nullptr), "KokkosNN::softmax: x has a negative extent: (5, -1)");
  wrong      = cx;
  wrong.data = nullptr;
  expect_error(kokkosnn_softmax(&here, &wrong, &cx, nullptr), "KokkosNN::softmax: x of extents (5, 7) has no memory");
  wrong      = cx;
  wrong.data = static_cast<char*>(cx.data) + 2;
  EXPECT_EQ(kokkosnn_softmax(&here, &wrong, &cx, nullptr), KOKKOSNN_INVALID_ARGUMENT);
  EXPECT_NE(std::string(kokkosnn_last_error()).find("is not aligned to its elements of 4 bytes"), std::string::npos);
}

/// A program that was compiled with an older header passes fewer members; a newer one more than this library knows.
TEST(CInterface, TakesOptionsOfOlderPrograms) {
  const auto x             = filled<float>(1, queries, keys);
  const auto y             = empty<float>(queries, keys);
  const kokkosnn_tensor cx = tensor(x), cy = tensor(y);
  kokkosnn_softmax_options options = KOKKOSNN_SOFTMAX_OPTIONS_INIT;
  options.size                     = offsetof(kokkosnn_softmax_options, axis);
  options.scale                    = 2;
  options.axis                     = 99;  // beyond its size: not read
  Exec exec;
  expect_same(
      "softmax with two options", y, [&] { KokkosNN::softmax(exec, x, y, {.scale = 2}); },
      [&] { return kokkosnn_softmax(&here, &cx, &cy, &options); });

  options.size = sizeof(options) + 8;
  EXPECT_EQ(kokkosnn_softmax(&here, &cx, &cy, &options), KOKKOSNN_INVALID_ARGUMENT);
  EXPECT_NE(std::string(kokkosnn_last_error()).find("softmax options have size 40"), std::string::npos)
      << kokkosnn_last_error();
  options            = KOKKOSNN_SOFTMAX_OPTIONS_INIT;
  options.masked_row = 2;
  expect_error(kokkosnn_softmax(&here, &cx, &cy, &options), "KokkosNN::softmax: masked_row must be 0 to 1, but is 2");
}

TEST(CInterface, RefusesOtherDevices) {
  const auto x             = filled<float>(1, queries, keys);
  const kokkosnn_tensor cx = tensor(x);
  kokkosnn_exec elsewhere  = here;
  elsewhere.device_kind    = 99;
  EXPECT_EQ(kokkosnn_softmax(&elsewhere, &cx, &cx, nullptr), KOKKOSNN_INVALID_ARGUMENT);
  EXPECT_NE(std::string(kokkosnn_last_error()).find(std::string("in a library for ") + Exec::name() + ", but is 99"),
            std::string::npos)
      << kokkosnn_last_error();
  elsewhere              = here;
  elsewhere.device_index = 77;
  EXPECT_EQ(kokkosnn_softmax(&elsewhere, &cx, &cx, nullptr), KOKKOSNN_INVALID_ARGUMENT);
  EXPECT_NE(std::string(kokkosnn_last_error()).find("but is 77"), std::string::npos) << kokkosnn_last_error();
  if (!on_gpu) {
    elsewhere        = here;
    elsewhere.stream = cx.data;
    EXPECT_EQ(kokkosnn_softmax(&elsewhere, &cx, &cx, nullptr), KOKKOSNN_INVALID_ARGUMENT);
    EXPECT_NE(std::string(kokkosnn_last_error()).find("a host has no streams"), std::string::npos);
  }
}

TEST(CInterface, ForgetsAStreamThatGoes) {
  const auto x             = filled<float>(1, queries, keys);
  const kokkosnn_tensor cx = tensor(x);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(kokkosnn_softmax(&here, &cx, &cx, nullptr), KOKKOSNN_SUCCESS);
    Kokkos::fence();
    EXPECT_EQ(kokkosnn_release_stream(&here), KOKKOSNN_SUCCESS);
  }
}

/// Also runs alone: its threads make the process' first calls then.
TEST(CInterface, MayBeCalledByThreadsAtOnce) {
#if defined(KOKKOS_ENABLE_THREADS)
  if (std::is_same_v<Exec, Kokkos::Threads>) GTEST_SKIP() << "Kokkos::Threads serves one host thread";
#endif
  const auto x        = filled<float>(1, queries, keys);
  const auto expected = empty<float>(queries, keys);
  KokkosNN::softmax(x, expected);
  std::vector<std::remove_const_t<decltype(x)>> outputs;
  for (int t = 0; t < 4; ++t) outputs.push_back(empty<float>(queries, keys));
  std::vector<std::thread> threads;
  std::vector<std::string> errors(4);
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const kokkosnn_tensor cx = tensor(x), cy = tensor(outputs[t]);
      for (int i = 0; i < 50; ++i) {
        if (kokkosnn_softmax(&here, &cx, &cy, nullptr) != KOKKOSNN_SUCCESS) errors[t] = kokkosnn_last_error();
      }
      // The message is this thread's own.
      if (kokkosnn_softmax(&here, &cx, nullptr, nullptr) != KOKKOSNN_INVALID_ARGUMENT) errors[t] = "no error";
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < 4; ++t) {
    EXPECT_EQ(errors[t], "");
    EXPECT_EQ(bytes_of(outputs[t]), bytes_of(expected));
  }
}

}  // namespace
}  // namespace KokkosNNTest
