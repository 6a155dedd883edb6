// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_MATMUL_HPP
#define KOKKOSNN_MATMUL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/matmul_call.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/matmul_options.hpp>

#include <Kokkos_Core.hpp>

// Matrix products, c = epilogue(alpha a b + beta c), with a functor of the user for an epilogue.

namespace KokkosNN {

/// Matrix product, also of batches: c = alpha a b + beta c.
///
///     c[.., i, j] = alpha sum_k a[.., i, k] b[.., k, j] + beta c[.., i, j]
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param a        matrices (.., m, k); rank 2 up to that of c; or GatheredRows
/// \param b        matrices (.., k, n); rank 2 up to that of c, and of a's type
/// \param c        output (.., m, n); of a's type (compiled in the library) or another (compiled in the user's file);
///                 or SummedRows
/// \param options  alpha, beta, precision
///
/// Views      hold double, float, half_t or bhalf_t, in any layout, with any strides and alignment: a transposed matrix
///            is a View with its strides exchanged, and is not copied. Axes before the last two are batches: a and b
///            broadcast along them to c as in NumPy, from the last one on, where an axis is missing or has extent 1.
///            Any extents, 0 and 1 included; with k = 0 the product is 0. 64-bit offsets.
/// In place   c overlaps neither a nor b.
/// Rows       GatheredRows{a, rows}: c[i, :] is of the row rows[i] of a, which has any number of rows.
///            SummedRows{c, row_offsets}: c[r, :] = sum_i epilogue(alpha a[i, :] b, inputs[i, :]) + beta c[r, :] over
///            the rows row_offsets[r] to row_offsets[r + 1] - 1 of the product, which is not stored; inputs broadcast
///            to the product, and c is none of them. Both at once are a graph's messages: rows are the sources of
///            edges, row_offsets those of the edges of each target, as `segmented_softmax` has them. Edges in another
///            order go by an index: rows[i] is then the source of the i-th edge in the order of targets. Matrices of
///            rank 2; integers of any type and stride, read on the device alone. An index that is no row of a gives
///            NaN in its row; nothing is read out of bounds, and with alpha = 0 no index is. Where row_offsets do not
///            ascend or leave the product, c's content is undefined, but no memory outside the Views is touched. A row
///            without products is beta c. Gradients: that of a by SummedRows of dc b^T, by the offsets of the sources.
/// Ordering   asynchronous on `exec`: the call enqueues one kernel, or two where k is split, and fences nothing; after
///            the first call of its kind and size on `exec` it allocates nothing. On a host a thread packs parts of a
///            and b into its team scratch, which Kokkos keeps.
/// Arithmetic sums of double in double, of all others in float; alpha and beta are applied to these sums, in double if
///            c holds double, and the result is rounded once to c's type. Sums go along k in one order, without
///            atomics: results are the same bits from run to run. Where few tiles of c would fill the device and k is
///            long, teams sum parts of k, which a second kernel adds in order ahead of the epilogue. On a host an
///            element's bits depend on its terms alone: on neither threads, nor tiles, nor whether k is split. On a
///            GPU the parts depend on the extents and the device; with Determinism::batch_invariant k is not split
///            there, and bits depend on an element's terms alone as well.
///            Rows that are summed are added in order, one after the other, in the type of alpha: a row's bits depend
///            on its products alone.
/// Accuracy   |error| <= (k + 2) u sum_k |alpha a_ik b_kj| + u |result|, u half an ulp of the accumulator's 1, and half
///            an ulp of c's type; tensor cores truncate sums of 16-bit elements, so u is twice that, and so it may be
///            on AMD's matrix cores; those of MI200 take 16-bit subnormal numbers for 0. Precision tensor_float32x3:
///            twice float's; tensor_float32: elements are rounded to 11 significant bits first; HIP has float itself
///            for both.
/// Provider   where the library was built with KokkosNN_ENABLE_BLAS, cuBLAS on CUDA and rocBLAS on HIP compute products
///            without an epilogue, of one type, by strides that BLAS expresses, unless they are batch_invariant,
///            mapped, or on CUDA of tensor_float32x3, or a thousand or more of float or double with 8 to 16 rows, which
///            own kernels multiply sooner; errors and order of sums are its own (rocBLAS's without atomics),
///            and an instance's first call makes a handle. rocBLAS computes float exactly, whatever the precision.
///            Hosts' own kernels are the faster ones; BLAS computes products of double and float where
///            options.provider asks for it, on as many threads as it takes. KOKKOSNN_VERBOSE says which one it was.
/// Values     NaN and infinities follow IEEE 754 products and sums; an infinite element gives NaN by tensor_float32x3.
/// Empty      a c without elements: nothing is done.
/// Errors     std::invalid_argument, with the extents and nothing written: matrices that do not fit, batches that do
///            not broadcast, overlap, a c whose elements share memory; rows or row_offsets that do not fit.
/// Cost       2 m n k operations a matrix; of a split k, its parts' m n sums are written and read, too. Batches that b
///            does not depend on are one tall matrix where strides allow. A
///            GPU's team multiplies a tile of c through 24 to 65 KiB of team scratch by tensor cores where there are
///            some (CUDA from sm_80 on: 16-bit elements, double on data-centre cards, float by the TF32 precisions; HIP
///            on MI200 and MI300: the matrix cores, all types), else by multiplications; operands whose base, strides
///            and batch strides are multiples of 16 bytes, with a contiguous axis, are copied asynchronously, others
///            element by element. On CUDA a thousand or more products of up to 32 rows (doubles 16), without an
///            epilogue, take tiles of 16 rows. Hosts pack parts of a and b, as floats if they hold 16 bits, and
///            multiply them by vectors. Gathered rows are read where they are, and sums are written once; one row of c
///            is summed by one team, however many products it has.
/// Hopper     products of half_t and bhalf_t, c holding 16 bits or float, of operands that can be copied
///            asynchronously, without maps and with up to three axes of batches, have kernels for warpgroups, whose
///            tiles of 128 x 256 pass through 194 KiB of scratch, where these tiles fill the device. They sum k in
///            another order than the others, so batch_invariant products are not theirs. An epilogue, or a c of another
///            type, has one where its file is compiled for sm_90a, with KOKKOSNN_FOR_SM_90A defined.
///
///     matmul(exec, a, b, c);                            // c = a b
///     matmul(exec, a, b, c, {.alpha = 0.5, .beta = 1});  // c = a b / 2 + c
///     matmul(exec, GatheredRows{x, sources}, w, SummedRows{y, offsets});  // y(t, :) = sum over edges x(source, :) w
template <Concepts::ExecutionSpace Exec, Concepts::MatmulA A, Concepts::View BView, Concepts::MatmulC C>
void matmul(const Exec& exec, const A& a, const BView& b, const C& c, const MatmulOptions& options = {}) {
  Impl::call_matmul(exec, options, a, b, c);
}

/// Matrix product with an epilogue: c = epilogue(alpha a b + beta c, in0, in1, ...), by the sums while they are in
/// registers or in a cache.
///
/// \param exec      execution-space instance; the call is asynchronous on it
/// \param a         matrices (.., m, k), or GatheredRows
/// \param b         matrices (.., k, n)
/// \param c         output (.., m, n), or SummedRows, whose products the epilogue takes one by one: beta c is added to
///                  their sum
/// \param options   alpha, beta, precision
/// \param epilogue  functor (KOKKOS_LAMBDA or struct) of the sum and one number an input, all double if any View holds
///                  double, else float; it returns a number. It is copied, called as const, once for each element, in
///                  any order, also at the same time. Its kernels are compiled in the user's file
/// \param inputs    up to 7 Views of rank up to that of c, which broadcast to it: a bias by column has extents (n), one
///                  by row (m, 1), a residual those of c. An input may be c itself (the same View)
///
///     matmul(exec, x, w, y, {}, KOKKOS_LAMBDA(float s, float b, float r) { return Kokkos::fmax(s + b, 0.0f) + r; },
///            bias, residual);
template <Concepts::ExecutionSpace Exec, Concepts::MatmulA A, Concepts::View BView, Concepts::MatmulC C, class F,
          Concepts::View... InViews>
void matmul(const Exec& exec, const A& a, const BView& b, const C& c, const MatmulOptions& options, const F& epilogue,
            const InViews&... inputs) {
  Impl::call_matmul_with_epilogue(exec, options, a, b, c, epilogue, inputs...);
}

/// Gradients of a matrix product c = a b by a and by b.
///
///     da = alpha dc b^T + beta da,   db = alpha a^T dc + beta db
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param dc       the gradient with respect to c, (.., m, n)
/// \param a        matrices (.., m, k), as in `matmul`
/// \param b        matrices (.., k, n), as in `matmul`
/// \param da       output of a's rank and extents; no_view if it is not wanted
/// \param db       output of b's rank and extents; no_view if it is not wanted
/// \param options  alpha, that of the product; beta, 1 to add to what da and db hold; precision
///
/// Views      as of `matmul`, all of one type. The gradient of an operand that is broadcast is the sum over those
///            batches: one product where these are one axis with the product's summed axis (m of db, n of da) by the
///            strides of the factors, as for weights b (k, n) where batches and rows of a and dc follow each other.
///            Otherwise it is a product a batch, whose sums a GPU writes to a workspace and adds in order, too, where
///            they have more than 256 MB in rounds.
/// In place   da and db overlap nothing else.
/// Ordering   asynchronous on `exec`: one kernel a gradient, or two where its sums are split, two a round; da first.
/// Arithmetic, accuracy, values, cost: those of `matmul` for these products. Sums are in one order, without atomics:
///            the same bits from run to run.
/// Epilogue   c = f(s, ..) of s = a b: dc is the gradient by s, dc f'(s), which one `fused_elementwise` computes.
/// Errors     std::invalid_argument as of `matmul`; nothing is written then.
///
///     matmul_backward(exec, dy, x, w, dx, dw);                        // y = x w
///     matmul_backward(exec, dy, x, w, no_view, dw, {.beta = 1});      // dw += x^T dy
template <Concepts::ExecutionSpace Exec, Concepts::View DcView, Concepts::View AView, Concepts::View BView,
          Concepts::OptionalView DaView, Concepts::OptionalView DbView>
void matmul_backward(const Exec& exec, const DcView& dc, const AView& a, const BView& b, const DaView& da,
                     const DbView& db, const MatmulOptions& options = {}) {
  Impl::call_matmul_backward(exec, options, dc, a, b, da, db);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_MATMUL_HPP
