// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// The shapes that are measured: every sweep is a line of one table, `sweeps`. A new shape is a new line here; the rest
/// of perf/ follows.
#ifndef KOKKOSNN_PERF_SHAPES_HPP
#define KOKKOSNN_PERF_SHAPES_HPP

#include <KokkosNN/plan.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace KokkosNN::Perf {

/// How rows lie in memory: a matrix, or ragged rows one after the other, of N columns in the mean.
enum class Layout {
  right,
  left,
  ragged,  ///< rows of 0 to 2 N elements, scattered
  even,    ///< ragged rows that happen to have N elements each
  skewed   ///< rows of N elements, but one in the middle that has as many more as there are rows
};

constexpr bool is_ragged(Layout layout) { return layout != Layout::right && layout != Layout::left; }

inline const char* to_string(Layout layout) {
  switch (layout) {
    case Layout::right:
      return "right";
    case Layout::left:
      return "left";
    case Layout::ragged:
      return "ragged";
    case Layout::even:
      return "even";
    case Layout::skewed:
      break;
  }
  return "skewed";
}

constexpr int size_of(ElementType type) {
  switch (type) {
    case ElementType::f64:
      return 8;
    case ElementType::f32:
      return 4;
    case ElementType::f16:
    case ElementType::bf16:
      return 2;
    case ElementType::other:
      break;
  }
  return 0;
}

inline ElementType type_named(const std::string& name) {
  for (const ElementType type : {ElementType::f64, ElementType::f32, ElementType::f16, ElementType::bf16}) {
    if (name == KokkosNN::to_string(type)) return type;
  }
  throw std::invalid_argument("no element type " + name);
}

/// How many rows a shape has; the one member that is set counts.
struct RowRule {
  std::int64_t fixed    = 0;  ///< this many
  std::int64_t per_col  = 0;  ///< this many times the columns: attention has heads * batch * L rows of L
  std::int64_t elements = 0;  ///< this many elements over the columns: the same traffic for every N

  constexpr std::int64_t rows(std::int64_t cols) const {
    if (fixed > 0) return fixed;
    return std::max<std::int64_t>(1, per_col > 0 ? per_col * cols : elements / cols);
  }
};

/// The masks that are measured: of attention, with as many queries a head as keys.
enum class MaskKind { none, causal, lengths, bias };
constexpr double mask_scale = 0.125;  ///< of the logits under a mask

/// The elementwise operators that are measured; `none` for an operator of rows.
enum class Elementwise { none, add, cast, silu, gelu, swiglu, swiglu_backward, fused };

/// An elementwise operator's name, and the numbers of its inputs and outputs.
struct ElementwiseTraits {
  const char* name;
  int inputs;
  int outputs;
};
constexpr ElementwiseTraits traits_of(Elementwise op) {
  switch (op) {
    case Elementwise::add:
      return {"add", 2, 1};
    case Elementwise::cast:
      return {"cast", 1, 1};
    case Elementwise::silu:
      return {"silu", 1, 1};
    case Elementwise::gelu:
      return {"gelu", 1, 1};
    case Elementwise::swiglu:
      return {"swiglu", 2, 1};
    case Elementwise::swiglu_backward:
      return {"swiglu_backward", 3, 2};
    case Elementwise::fused:
      return {"fused_elementwise", 2, 1};
    case Elementwise::none:
      break;
  }
  return {"", 1, 1};
}

/// The calls of the rotary embedding that are measured, which is no RowOperator: rows of the table are positions, each
/// with so many heads; all of a head's elements are rotated.
enum class RopeKind { none, half_rotated, interleaved, angles };
constexpr std::int64_t rope_heads = 32;

inline const char* to_string(RopeKind kind) {
  switch (kind) {
    case RopeKind::half_rotated:
      return "rope";
    case RopeKind::interleaved:
      return "rope_interleaved";
    case RopeKind::angles:
      return "rope_angles";  // half-rotated, without tables
    case RopeKind::none:
      break;
  }
  return "none";
}

/// One line of the table. Sweeps of the same name share a plot and a table of the report.
struct Sweep {
  std::string_view name;
  RowRule rows;
  std::span<const std::int64_t> quick;  ///< columns of the default run
  std::span<const std::int64_t> full;   ///< columns of `--full`
  RowOperator op          = RowOperator::softmax;
  ElementType x_type      = ElementType::f32;
  ElementType y_type      = ElementType::f32;
  Layout layout           = Layout::right;
  MaskKind mask           = MaskKind::none;
  Elementwise elementwise = Elementwise::none;  ///< goes before `op`
  RopeKind rope           = RopeKind::none;     ///< likewise
};

/// The arrays of columns that the table refers to.
namespace Columns {

template <std::size_t Count>
using Array = std::array<std::int64_t, Count>;

/// 128 i for i = 2..99: the shapes of the Triton tutorial's fused softmax.
constexpr auto fused = [] {
  Array<98> cols{};
  for (int i = 2; i <= 99; ++i) cols[i - 2] = 128 * i;
  return cols;
}();
constexpr Array<11> fused_quick{256, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 10240, 12672};

/// Short rows that mostly begin between packs.
constexpr Array<10> short_odd{3, 7, 10, 17, 25, 33, 49, 63, 99, 127};
constexpr Array<2> short_odd_quick{7, 33};

constexpr Array<6> attention{16, 32, 64, 128, 256, 512};

constexpr Array<8> wide{1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20};
constexpr Array<3> wide_quick{1 << 14, 1 << 17, 1 << 20};

constexpr Array<4> vocabulary{32000, 50257, 128256, 151936};

/// 2^k - 1, 2^k, 2^k + 1 for k in [First, Last], Step apart.
template <int First, int Last, int Step>
constexpr auto around_powers_of_two() {
  Array<3 * ((Last - First) / Step + 1)> cols{};
  std::size_t next = 0;
  for (int k = First; k <= Last; k += Step)
    for (int offset = -1; offset <= 1; ++offset) cols[next++] = (std::int64_t{1} << k) + offset;
  return cols;
}
constexpr auto cliffs       = around_powers_of_two<5, 17, 1>();
constexpr auto cliffs_quick = around_powers_of_two<7, 16, 3>();

constexpr Array<9> layouts{16, 64, 128, 256, 1024, 2048, 4096, 8192, 16384};
constexpr Array<3> layouts_quick{128, 1024, 8192};

/// The gradients' shapes, one number of rows each.
constexpr Array<3> rows_4096{1024, 4096, 12672};
constexpr Array<1> rows_4096_quick{4096};
constexpr Array<1> rows_32768{1024};
constexpr Array<1> rows_16384{8192};
constexpr Array<1> rows_1024{50257};
constexpr Array<1> rows_512{131072};
constexpr Array<1> rows_2048{128256};
constexpr Array<0> none{};

/// The cross entropies': classes of image and language models, and the marks.
constexpr Array<1> classes{1000};
constexpr Array<1> vocabulary_32000{32000};
constexpr Array<1> vocabulary_50257{50257};
constexpr Array<1> vocabulary_128256{128256};

/// The norms': widths of heads, models and of a feed-forward layer.
constexpr Array<5> norms{128, 1024, 4096, 8192, 16384};
constexpr Array<2> norms_quick{1024, 4096};

constexpr Array<7> types{64, 256, 1024, 4096, 8192, 16384, 32768};
constexpr Array<3> types_quick{256, 1024, 8192};

/// The marks: shapes of models and of others' benchmarks, where KokkosNN is held against the best peer of each.
constexpr Array<4> heads{16, 32, 64, 128};
constexpr Array<1> vision_tokens{197};
constexpr Array<1> router{256};
constexpr Array<3> short_rows{512, 781, 1000};
constexpr Array<6> long_rows{1024, 2048, 4096, 8192, 12672, 16384};
constexpr Array<6> odd_rows{1023, 1025, 2049, 4097, 5000, 8193};
constexpr Array<2> wide_rows{32000, 32768};
constexpr Array<1> wider_row{49152};
constexpr Array<5> vocabularies{50257, 65536, 128256, 151936, 262144};
constexpr Array<4> vocabularies_16_bit{50257, 65536, 128256, 262144};
constexpr Array<1> million{1 << 20};
constexpr Array<1> sixteen_million{1 << 24};
/// Ragged rows.
constexpr Array<1> mean_32{32};
constexpr Array<1> mean_10{10};
constexpr Array<6> even{4, 10, 32, 100, 512, 4096};
constexpr Array<2> even_quick{32, 512};
constexpr Array<1> left_short{64};
constexpr Array<1> left_long{1024};
constexpr Array<1> left_longer{8192};

constexpr Array<1> elementwise{4096};

/// Heads of 64, 80 and 128 elements, rope_heads of them.
constexpr Array<3> positions{2048, 2560, 4096};
constexpr Array<2> positions_quick{2560, 4096};

constexpr Array<1> keys_1024{1024};
constexpr Array<1> keys_2048{2048};

}  // namespace Columns

/// Sweeps of one set of shapes, for other element types and for other operators.
constexpr Sweep types(ElementType x, ElementType y) {
  return {.name   = "types",
          .rows   = {.fixed = 8192},
          .quick  = Columns::types_quick,
          .full   = Columns::types,
          .x_type = x,
          .y_type = y};
}
constexpr Sweep operators(RowOperator op) {
  return {
      .name = "operators", .rows = {.fixed = 8192}, .quick = Columns::types_quick, .full = Columns::types, .op = op};
}
/// A gradient of all tensors of one type.
constexpr Sweep gradients(RowOperator op, ElementType type, std::int64_t rows, std::span<const std::int64_t> full,
                          std::span<const std::int64_t> quick) {
  return {.name   = "gradients",
          .rows   = {.fixed = rows},
          .quick  = quick,
          .full   = full,
          .op     = op,
          .x_type = type,
          .y_type = type};
}
/// A cross entropy. Losses are float; a gradient goes over the logits.
constexpr Sweep cross_entropies(RowOperator op, ElementType type, std::int64_t rows,
                                std::span<const std::int64_t> cols) {
  return {.name   = "cross_entropy",
          .rows   = {.fixed = rows},
          .quick  = cols,
          .full   = cols,
          .op     = op,
          .x_type = type,
          .y_type = op == RowOperator::cross_entropy ? ElementType::f32 : type};
}
/// A norm; its backward with the gradients of weight and bias.
constexpr Sweep norms(RowOperator op, ElementType type) {
  return {.name   = "norms",
          .rows   = {.elements = 1 << 26},
          .quick  = Columns::norms_quick,
          .full   = Columns::norms,
          .op     = op,
          .x_type = type,
          .y_type = type};
}
/// The last axis of a LayoutLeft View, which is Kokkos' default on GPUs.
constexpr Sweep layouts() {
  return {.name   = "layouts",
          .rows   = {.fixed = 16384},
          .quick  = Columns::layouts_quick,
          .full   = Columns::layouts,
          .layout = Layout::left};
}

/// 2^20 short rows of any number of columns.
constexpr Sweep short_rows(RowOperator op, ElementType type) {
  return {.name   = "short rows",
          .rows   = {.fixed = 1 << 20},
          .quick  = Columns::short_odd_quick,
          .full   = Columns::short_odd,
          .op     = op,
          .x_type = type,
          .y_type = type};
}

/// Scale and a mask, on heads of as many queries as columns; the yardstick moves all of x and y.
constexpr Sweep masked(MaskKind mask, std::string_view name, ElementType type, std::span<const std::int64_t> keys,
                       std::span<const std::int64_t> quick = {}) {
  return {.name   = name,
          .rows   = {.fixed = 131072},
          .quick  = quick,
          .full   = keys,
          .op     = RowOperator::masked_softmax,
          .x_type = type,
          .y_type = type,
          .mask   = mask};
}

/// segmented_softmax and its kin: 2^20 rows, like the edges of a graph's nodes; the skewed case has 10^6.
constexpr Sweep segmented(RowOperator op, ElementType type, Layout layout, std::span<const std::int64_t> full,
                          std::span<const std::int64_t> quick) {
  return {.name   = "segmented",
          .rows   = {.fixed = layout == Layout::skewed ? 1000000 : 1 << 20},
          .quick  = quick,
          .full   = full,
          .op     = op,
          .x_type = type,
          .y_type = type,
          .layout = layout};
}

/// An elementwise operator on matrices of 64 MiB a tensor of floats.
constexpr Sweep elementwise(Elementwise op, ElementType x, ElementType y) {
  return {.name        = "elementwise",
          .rows        = {.fixed = 4096},
          .quick       = Columns::elementwise,
          .full        = Columns::elementwise,
          .x_type      = x,
          .y_type      = y,
          .elementwise = op};
}

/// The rotary embedding of 32 heads.
constexpr Sweep ropes(RopeKind kind, ElementType type) {
  return {.name   = "rope",
          .rows   = {.fixed = 32768},
          .quick  = Columns::positions_quick,
          .full   = Columns::positions,
          .x_type = type,
          .y_type = type,
          .rope   = kind};
}

/// Some of the marks; they are in the full set only.
constexpr Sweep marks(ElementType type, std::int64_t rows, std::span<const std::int64_t> cols,
                      Layout layout = Layout::right) {
  return {.name   = "marks",
          .rows   = {.fixed = rows},
          .quick  = {},
          .full   = cols,
          .x_type = type,
          .y_type = type,
          .layout = layout};
}

constexpr std::array sweeps{
    Sweep{"fused", {.fixed = 4096}, Columns::fused_quick, Columns::fused},
    Sweep{"attention", {.per_col = 32 * 64}, Columns::attention, Columns::attention},
    Sweep{"wide, 8 rows", {.fixed = 8}, Columns::wide_quick, Columns::wide},
    Sweep{"wide, many rows", {.elements = 1 << 28}, Columns::wide_quick, Columns::wide},
    Sweep{"vocabulary", {.fixed = 4096}, Columns::vocabulary, Columns::vocabulary},
    Sweep{"cliffs", {.elements = 1 << 26}, Columns::cliffs_quick, Columns::cliffs},
    short_rows(RowOperator::softmax, ElementType::f32),
    short_rows(RowOperator::softmax, ElementType::bf16),
    short_rows(RowOperator::softmax_backward, ElementType::f32),
    short_rows(RowOperator::softmax_backward, ElementType::bf16),
    layouts(),
    types(ElementType::f64, ElementType::f64),
    types(ElementType::f32, ElementType::f32),
    types(ElementType::f16, ElementType::f16),
    types(ElementType::bf16, ElementType::bf16),
    types(ElementType::f32, ElementType::bf16),
    types(ElementType::bf16, ElementType::f32),
    operators(RowOperator::log_softmax),
    operators(RowOperator::logsumexp),
    marks(ElementType::f32, 1048576, Columns::heads),
    marks(ElementType::f32, 262144, Columns::vision_tokens),
    marks(ElementType::f32, 32768, Columns::router),
    marks(ElementType::f32, 16384, Columns::short_rows),
    marks(ElementType::f32, 4096, Columns::long_rows),
    marks(ElementType::f32, 4096, Columns::odd_rows),
    marks(ElementType::f32, 4096, Columns::wide_rows),
    marks(ElementType::f32, 2048, Columns::wider_row),
    marks(ElementType::f32, 1024, Columns::vocabularies),
    marks(ElementType::f32, 64, Columns::million),
    marks(ElementType::f32, 8, Columns::million),
    marks(ElementType::f32, 1, Columns::sixteen_million),
    marks(ElementType::f32, 65536, Columns::left_short, Layout::left),
    marks(ElementType::f32, 65536, Columns::left_long, Layout::left),
    marks(ElementType::f32, 4096, Columns::left_longer, Layout::left),
    marks(ElementType::bf16, 1048576, Columns::heads),
    marks(ElementType::bf16, 262144, Columns::vision_tokens),
    marks(ElementType::bf16, 32768, Columns::router),
    marks(ElementType::bf16, 16384, Columns::short_rows),
    marks(ElementType::bf16, 16384, Columns::long_rows),
    marks(ElementType::bf16, 4096, Columns::odd_rows),
    marks(ElementType::bf16, 4096, Columns::wide_rows),
    marks(ElementType::bf16, 2048, Columns::vocabularies_16_bit),
    marks(ElementType::bf16, 64, Columns::million),
    marks(ElementType::bf16, 8, Columns::million),
    marks(ElementType::bf16, 1, Columns::sixteen_million),
    marks(ElementType::bf16, 65536, Columns::left_short, Layout::left),
    marks(ElementType::bf16, 65536, Columns::left_long, Layout::left),
    marks(ElementType::bf16, 4096, Columns::left_longer, Layout::left),
    marks(ElementType::f16, 1048576, Columns::heads),
    marks(ElementType::f16, 262144, Columns::vision_tokens),
    marks(ElementType::f16, 32768, Columns::router),
    marks(ElementType::f16, 16384, Columns::short_rows),
    marks(ElementType::f16, 16384, Columns::long_rows),
    marks(ElementType::f64, 4096, Columns::long_rows),
    gradients(RowOperator::softmax_backward, ElementType::f32, 4096, Columns::rows_4096, Columns::rows_4096_quick),
    gradients(RowOperator::softmax_backward, ElementType::f32, 1024, Columns::rows_1024, Columns::rows_1024),
    gradients(RowOperator::softmax_backward, ElementType::f32, 512, Columns::rows_512, Columns::none),
    gradients(RowOperator::softmax_backward, ElementType::bf16, 32768, Columns::rows_32768, Columns::rows_32768),
    gradients(RowOperator::softmax_backward, ElementType::bf16, 16384, Columns::rows_16384, Columns::none),
    gradients(RowOperator::softmax_backward, ElementType::bf16, 2048, Columns::rows_2048, Columns::rows_2048),
    gradients(RowOperator::log_softmax_backward, ElementType::f32, 4096, Columns::rows_4096, Columns::rows_4096_quick),
    gradients(RowOperator::log_softmax_backward, ElementType::f32, 1024, Columns::rows_1024, Columns::rows_1024),
    gradients(RowOperator::log_softmax_backward, ElementType::f32, 512, Columns::rows_512, Columns::none),
    gradients(RowOperator::log_softmax_backward, ElementType::bf16, 32768, Columns::rows_32768, Columns::rows_32768),
    gradients(RowOperator::log_softmax_backward, ElementType::bf16, 16384, Columns::rows_16384, Columns::none),
    gradients(RowOperator::log_softmax_backward, ElementType::bf16, 2048, Columns::rows_2048, Columns::rows_2048),
    masked(MaskKind::causal, "masked, causal", ElementType::f32, Columns::keys_2048, Columns::keys_2048),
    masked(MaskKind::causal, "masked, causal", ElementType::f32, Columns::keys_1024),
    masked(MaskKind::causal, "masked, causal", ElementType::bf16, Columns::keys_1024, Columns::keys_1024),
    masked(MaskKind::causal, "masked, causal", ElementType::bf16, Columns::keys_2048),
    masked(MaskKind::lengths, "masked, lengths", ElementType::f32, Columns::keys_2048, Columns::keys_2048),
    masked(MaskKind::lengths, "masked, lengths", ElementType::bf16, Columns::keys_1024),
    masked(MaskKind::bias, "masked, bias", ElementType::f32, Columns::keys_2048, Columns::keys_2048),
    masked(MaskKind::bias, "masked, bias", ElementType::bf16, Columns::keys_1024),
    segmented(RowOperator::softmax, ElementType::f32, Layout::ragged, Columns::mean_32, Columns::mean_32),
    segmented(RowOperator::softmax, ElementType::f32, Layout::skewed, Columns::mean_10, Columns::mean_10),
    segmented(RowOperator::softmax, ElementType::f32, Layout::even, Columns::even, Columns::even_quick),
    segmented(RowOperator::softmax, ElementType::bf16, Layout::ragged, Columns::mean_32, Columns::mean_32),
    segmented(RowOperator::softmax, ElementType::bf16, Layout::skewed, Columns::mean_10, Columns::none),
    segmented(RowOperator::log_softmax, ElementType::f32, Layout::ragged, Columns::mean_32, Columns::none),
    segmented(RowOperator::logsumexp, ElementType::f32, Layout::ragged, Columns::mean_32, Columns::none),
    segmented(RowOperator::softmax_backward, ElementType::f32, Layout::ragged, Columns::mean_32, Columns::mean_32),
    segmented(RowOperator::softmax_backward, ElementType::f32, Layout::skewed, Columns::mean_10, Columns::none),
    segmented(RowOperator::log_softmax_backward, ElementType::f32, Layout::ragged, Columns::mean_32, Columns::none),
    cross_entropies(RowOperator::cross_entropy_with_gradient, ElementType::f32, 65536, Columns::classes),
    cross_entropies(RowOperator::cross_entropy_with_gradient, ElementType::f32, 4096, Columns::vocabulary_50257),
    cross_entropies(RowOperator::cross_entropy_with_gradient, ElementType::bf16, 8192, Columns::vocabulary_32000),
    cross_entropies(RowOperator::cross_entropy_with_gradient, ElementType::bf16, 4096, Columns::vocabulary_50257),
    cross_entropies(RowOperator::cross_entropy_with_gradient, ElementType::bf16, 4096, Columns::vocabulary_128256),
    cross_entropies(RowOperator::cross_entropy, ElementType::f32, 65536, Columns::classes),
    cross_entropies(RowOperator::cross_entropy, ElementType::f32, 4096, Columns::vocabulary_50257),
    cross_entropies(RowOperator::cross_entropy, ElementType::bf16, 8192, Columns::vocabulary_32000),
    cross_entropies(RowOperator::cross_entropy, ElementType::bf16, 4096, Columns::vocabulary_128256),
    elementwise(Elementwise::add, ElementType::f32, ElementType::f32),
    elementwise(Elementwise::add, ElementType::bf16, ElementType::bf16),
    elementwise(Elementwise::fused, ElementType::f32, ElementType::f32),
    elementwise(Elementwise::cast, ElementType::f32, ElementType::bf16),
    elementwise(Elementwise::silu, ElementType::f32, ElementType::f32),
    elementwise(Elementwise::silu, ElementType::bf16, ElementType::bf16),
    elementwise(Elementwise::gelu, ElementType::f32, ElementType::f32),
    elementwise(Elementwise::gelu, ElementType::bf16, ElementType::bf16),
    elementwise(Elementwise::swiglu, ElementType::f32, ElementType::f32),
    elementwise(Elementwise::swiglu, ElementType::bf16, ElementType::bf16),
    elementwise(Elementwise::swiglu_backward, ElementType::f32, ElementType::f32),
    elementwise(Elementwise::swiglu_backward, ElementType::bf16, ElementType::bf16),
    norms(RowOperator::rms_norm, ElementType::f32),
    norms(RowOperator::rms_norm, ElementType::bf16),
    norms(RowOperator::layer_norm, ElementType::f32),
    norms(RowOperator::layer_norm, ElementType::bf16),
    norms(RowOperator::rms_norm_backward, ElementType::f32),
    norms(RowOperator::rms_norm_backward, ElementType::bf16),
    norms(RowOperator::layer_norm_backward, ElementType::f32),
    norms(RowOperator::layer_norm_backward, ElementType::bf16),
    ropes(RopeKind::half_rotated, ElementType::f32),
    ropes(RopeKind::half_rotated, ElementType::bf16),
    ropes(RopeKind::interleaved, ElementType::f32),
    ropes(RopeKind::interleaved, ElementType::bf16),
    ropes(RopeKind::angles, ElementType::f32),
    ropes(RopeKind::angles, ElementType::bf16),
};

/// One shape as it will run on this machine.
struct Case {
  std::string sweep;
  RowOperator op            = RowOperator::softmax;
  ElementType x_type        = ElementType::f32;
  ElementType y_type        = ElementType::f32;
  Layout layout             = Layout::right;
  MaskKind mask             = MaskKind::none;
  std::int64_t nominal_rows = 0;  ///< as the table has it
  std::int64_t rows         = 0;  ///< as it runs here
  std::int64_t cols         = 0;
  Elementwise elementwise   = Elementwise::none;  ///< goes before `op`
  RopeKind rope             = RopeKind::none;     ///< likewise

  bool operator==(const Case&) const = default;

  /// The operator is one of RowOperator.
  bool is_of_rows() const { return elementwise == Elementwise::none && rope == RopeKind::none; }
  const char* operator_name() const {
    if (rope != RopeKind::none) return to_string(rope);
    return is_of_rows() ? KokkosNN::to_string(op) : traits_of(elementwise).name;
  }
  /// Elements of the inputs of an elementwise operator, one behind another.
  std::int64_t x_elements() const {
    return rows * cols * traits_of(elementwise).inputs + (layout == Layout::skewed ? rows : 0);
  }
  std::int64_t y_elements() const {
    if (!is_of_rows()) return rows * cols * traits_of(elementwise).outputs;
    return is_reduction(op) ? rows : x_elements();
  }
  /// Heads of a masked case: its attention matrices are square.
  std::int64_t heads() const { return rows / cols; }
  /// Elements of dy, of x's type: gradients have a second input.
  std::int64_t dy_elements() const { return row_tensors(op) == 2 ? x_elements() : 0; }
  /// Row offsets, 32-bit integers.
  std::int64_t offsets() const { return is_ragged(layout) ? rows + 1 : 0; }
  /// Bytes that any implementation must move: inputs once, y once. Labels don't count.
  std::int64_t bytes() const {
    return (x_elements() + dy_elements()) * size_of(x_type) + y_elements() * size_of(y_type) + 4 * offsets();
  }

  /// "f32", or "f32>bf16" where x and y differ.
  std::string type() const {
    const std::string x = KokkosNN::to_string(x_type);
    return x_type == y_type ? x : x + ">" + KokkosNN::to_string(y_type);
  }
  std::string name() const {
    return sweep + '/' + operator_name() + '/' + type() + '/' + to_string(layout) + '/' + std::to_string(rows) + 'x' +
           std::to_string(cols);
  }
};

/// The case with so many rows that it moves at most `traffic` bytes; one row, or of a mask one head, at least.
inline Case scaled(Case shape, std::int64_t traffic) {
  const std::int64_t row_bytes = std::max<std::int64_t>(1, shape.bytes() / shape.rows);
  const std::int64_t rows      = std::max<std::int64_t>(1, traffic / row_bytes);
  if (shape.mask != MaskKind::none) {
    shape.rows = std::clamp(rows / shape.cols, std::int64_t(1), shape.rows / shape.cols) * shape.cols;
    return shape;
  }
  if (rows < shape.rows) shape.rows = rows > 64 ? rows / 64 * 64 : rows;
  return shape;
}

/// One shape of the sweep, scaled so that it moves at most `traffic` bytes.
inline Case case_of(const Sweep& sweep, std::int64_t cols, std::int64_t traffic) {
  const std::int64_t rows = sweep.rows.rows(cols);
  return scaled(Case{std::string(sweep.name), sweep.op, sweep.x_type, sweep.y_type, sweep.layout, sweep.mask, rows,
                     rows, cols, sweep.elementwise, sweep.rope},
                traffic);
}

/// The table, expanded and scaled so that a shape moves at most `traffic` bytes.
inline std::vector<Case> cases(bool full, std::int64_t traffic) {
  std::vector<Case> result;
  for (const Sweep& sweep : sweeps) {
    for (const std::int64_t cols : full ? sweep.full : sweep.quick) result.push_back(case_of(sweep, cols, traffic));
  }
  return result;
}

}  // namespace KokkosNN::Perf

#endif  // KOKKOSNN_PERF_SHAPES_HPP
