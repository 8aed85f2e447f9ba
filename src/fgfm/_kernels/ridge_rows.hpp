// Rows of features behind a constant column, dense or sparse, and their products with many columns.
//
// Z is (G, q). Its first column is 1; sparse rows do not store it. Each column of a product with
// sparse rows is summed by itself, in the order of the rows and of their entries, so that no bit
// depends on the columns beside it; products with dense rows are BLAS's.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "arrays.hpp"

namespace fgfm {

// Functions of BLAS and LAPACK, as scipy.linalg.cython_blas and cython_lapack export them: Fortran
// order, pointers. An array in C order is its own transpose in Fortran order.
struct Lapack {
    void (*dgemm)(char*, char*, int*, int*, int*, double*, double*, int*, double*, int*, double*,
                  double*, int*);
    void (*dsyrk)(char*, char*, int*, int*, double*, double*, int*, double*, double*, int*);
    void (*dpotrf)(char*, int*, double*, int*, int*);

    // out = op(a) b, op the transpose or nothing
    void multiply(Matrix<const double> a, bool transpose, const double* b, Index columns,
                  double* out) const {
        int m = static_cast<int>(columns), n = static_cast<int>(transpose ? a.cols : a.rows),
            k = static_cast<int>(transpose ? a.rows : a.cols), lda = static_cast<int>(a.cols);
        double one = 1.0, zero = 0.0;
        char plain = 'N', flag = transpose ? 'T' : 'N';
        dgemm(&plain, &flag, &m, &n, &k, &one, const_cast<double*>(b), &m,
              const_cast<double*>(a.data), &lda, &zero, out, &m);
    }

    // Set the lower triangle of out to a' a.
    void gram(Matrix<const double> a, double* out) const {
        int n = static_cast<int>(a.cols), k = static_cast<int>(a.rows);
        double one = 1.0, zero = 0.0;
        char upper = 'U', plain = 'N';
        dsyrk(&upper, &plain, &n, &k, &one, const_cast<double*>(a.data), &n, &zero, out, &n);
    }

    // Replace the lower triangle of a (d, d) by its Cholesky factor; return false if there is none.
    bool factorize(double* a, Index d) const {
        int n = static_cast<int>(d), info = 0;
        char upper = 'U';
        dpotrf(&upper, &n, a, &n, &info);
        return info == 0;
    }
};

// Vectors of 32 bytes.
template <class T>
struct Wide {
    static constexpr Index size = 32 / sizeof(T);
    typedef T Type __attribute__((vector_size(32)));

    static Type load(const T* from) {
        Type result;
        std::memcpy(&result, from, sizeof result);
        return result;
    }
    static void store(T* to, const Type& value) { std::memcpy(to, &value, sizeof value); }
    static constexpr Index padded(Index columns) { return (columns + size - 1) / size * size; }
};

// An array that begins at a cache line: a row of whole vectors then spans as few lines as possible.
template <class T>
struct LineAllocator {
    using value_type = T;
    static constexpr std::align_val_t LINE{64};

    LineAllocator() = default;
    template <class U>
    LineAllocator(const LineAllocator<U>&) {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), LINE)); }
    void deallocate(T* values, std::size_t) { ::operator delete(values, LINE); }
    bool operator==(const LineAllocator&) const = default;
};

template <class T>
using LineVector = std::vector<T, LineAllocator<T>>;

constexpr Index BLOCK = 4;  // vectors of sums that stay in registers

// Call body.template operator()<N>(first column) for blocks of N <= BLOCK vectors of columns.
template <class T, class Body>
inline void for_blocks(Index columns, Body body) {
    constexpr Index size = Wide<T>::size;
    Index c = 0;
    for (; c + BLOCK * size <= columns; c += BLOCK * size) body.template operator()<BLOCK>(c);
    switch ((columns - c) / size) {
        case 3: return body.template operator()<3>(c);
        case 2: return body.template operator()<2>(c);
        case 1: return body.template operator()<1>(c);
    }
}

class Rows {
public:
    // Dense rows with their constant column.
    Rows(const Lapack& lapack, Matrix<const double> Z)
        : lapack_(lapack), G_(Z.rows), q_(Z.cols), dense_(Z.data, Z.data + Z.rows * Z.cols) {}

    // Sparse rows in CSR, without their constant column, of p features.
    Rows(const Lapack& lapack, const double* data, const std::uint32_t* indices,
         std::span<const Index> indptr, Index p)
        : lapack_(lapack), G_(length(indptr) - 1), q_(p + 1), sparse_(true) {
        indptr_.assign(indptr.begin(), indptr.end());
        for (Index i = 0; i < indptr.back(); ++i) indices_.push_back(indices[i] + 1);
        values_.assign(data, data + indptr.back());
        singles_.assign(values_.begin(), values_.end());
    }

    // Some of the rows.
    Rows(const Rows& all, std::span<const Index> kept)
        : lapack_(all.lapack_), G_(length(kept)), q_(all.q_), sparse_(all.sparse_) {
        if (!sparse_) {
            dense_.reserve(G_ * q_);
            for (const Index g : kept) {
                const double* row = all.dense_.data() + g * q_;
                dense_.insert(dense_.end(), row, row + q_);
            }
            return;
        }
        indptr_.push_back(0);
        for (const Index g : kept) {
            for (Index i = all.indptr_[g]; i < all.indptr_[g + 1]; ++i) {
                indices_.push_back(all.indices_[i]);
                values_.push_back(all.values_[i]);
            }
            indptr_.push_back(static_cast<Index>(indices_.size()));
        }
        singles_.assign(values_.begin(), values_.end());
    }

    const Lapack& lapack() const { return lapack_; }
    Index count() const { return G_; }
    Index columns() const { return q_; }
    bool sparse() const { return sparse_; }
    Matrix<const double> dense() const { return {dense_.data(), G_, q_}; }

    // Columns of arrays that are multiplied: sparse products are computed in whole vectors.
    template <class T>
    Index padded(Index columns) const {
        return sparse_ ? Wide<T>::padded(columns) : columns;
    }

    // U = Z V
    template <class T>
    void multiply(const T* V, Index columns, T* U) const {
        if (!sparse_) {
            if constexpr (std::is_same_v<T, double>) lapack_.multiply(dense(), false, V, columns, U);
            return;
        }
        const T* const value = values<T>();  // copies that no store can change
        const std::uint32_t* const index = indices_.data();
        for (Index g = 0; g < G_; ++g) {
            for_blocks<T>(columns, [=, this]<Index N>(Index c) {
                typename Wide<T>::Type sum[N];
                for (Index k = 0; k < N; ++k) sum[k] = Wide<T>::load(V + c + k * Wide<T>::size);
                for (Index i = indptr_[g], end = indptr_[g + 1]; i < end; ++i) {
                    const T* const v = V + index[i] * columns + c;
                    for (Index k = 0; k < N; ++k) {
                        sum[k] += value[i] * Wide<T>::load(v + k * Wide<T>::size);
                    }
                }
                T* const u = U + g * columns + c;
                for (Index k = 0; k < N; ++k) Wide<T>::store(u + k * Wide<T>::size, sum[k]);
            });
        }
    }

    // V = Z' U
    template <class T>
    void multiply_transposed(const T* U, Index columns, T* V) const {
        if (!sparse_) {
            if constexpr (std::is_same_v<T, double>) lapack_.multiply(dense(), true, U, columns, V);
            return;
        }
        std::fill(V, V + q_ * columns, T(0));
        const T* const value = values<T>();
        const std::uint32_t* const index = indices_.data();
        for (Index g = 0; g < G_; ++g) {
            for_blocks<T>(columns, [=, this]<Index N>(Index c) {
                typename Wide<T>::Type sum[N];
                for (Index k = 0; k < N; ++k) {
                    T* const v = V + c + k * Wide<T>::size;
                    sum[k] = Wide<T>::load(U + g * columns + c + k * Wide<T>::size);
                    Wide<T>::store(v, Wide<T>::load(v) + sum[k]);
                }
                for (Index i = indptr_[g], end = indptr_[g + 1]; i < end; ++i) {
                    T* const v = V + index[i] * columns + c;
                    for (Index k = 0; k < N; ++k) {
                        T* const to = v + k * Wide<T>::size;
                        Wide<T>::store(to, Wide<T>::load(to) + value[i] * sum[k]);
                    }
                }
            });
        }
    }

    // Set the lower triangle of Z' diag(weight) Z, weight >= 0, of dense rows.
    void gram(const double* weight, double* out, Scratch<double>& weighted_rows) const {
        weighted_rows.resize(G_ * q_);
        for (Index g = 0; g < G_; ++g) {
            const double root = std::sqrt(weight[g]);
            for (Index j = g * q_; j < (g + 1) * q_; ++j) weighted_rows[j] = root * dense_[j];
        }
        lapack_.gram({weighted_rows.data(), G_, q_}, out);
    }

    // sum_g weight[g] Z[g, j]^2
    std::vector<double> squares(std::span<const double> weight) const {
        std::vector<double> sums(q_, 0.0);
        for (Index g = 0; g < G_; ++g) {
            if (!sparse_) {
                const double* z = dense_.data() + g * q_;
                for (Index j = 0; j < q_; ++j) sums[j] += weight[g] * z[j] * z[j];
                continue;
            }
            sums[0] += weight[g];
            for (Index i = indptr_[g]; i < indptr_[g + 1]; ++i) {
                sums[indices_[i]] += weight[g] * values_[i] * values_[i];
            }
        }
        return sums;
    }

    double largest_value() const {
        double largest = 1.0;
        for (const double x : values_) largest = std::max(largest, std::abs(x));
        return largest;
    }

private:
    Lapack lapack_;
    Index G_, q_;
    bool sparse_ = false;
    std::vector<double> dense_;  // (G, q)
    // entries in CSR, without the constant column; values in both precisions
    std::vector<std::uint32_t> indices_;
    std::vector<Index> indptr_;
    std::vector<double> values_;
    std::vector<float> singles_;

    template <class T>
    const T* values() const {
        if constexpr (std::is_same_v<T, float>) {
            return singles_.data();
        } else {
            return values_.data();
        }
    }
};

}  // namespace fgfm
