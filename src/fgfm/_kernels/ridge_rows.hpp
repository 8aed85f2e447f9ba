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
    void (*dpotri)(char*, int*, double*, int*, int*);
    void (*spotrf)(char*, int*, float*, int*, int*);
    void (*spotri)(char*, int*, float*, int*, int*);

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
    bool factorize(double* a, Index d) const { return factorize(dpotrf, a, d); }

    // Replace a symmetric matrix, of which the lower triangle is set, by its inverse.
    bool invert(double* a, Index d) const { return invert(dpotrf, dpotri, a, d); }
    bool invert(float* a, Index d) const { return invert(spotrf, spotri, a, d); }

private:
    template <class T>
    static bool factorize(void (*potrf)(char*, int*, T*, int*, int*), T* a, Index d) {
        int n = static_cast<int>(d), info = 0;
        char upper = 'U';
        potrf(&upper, &n, a, &n, &info);
        return info == 0;
    }

    template <class T>
    static bool invert(void (*potrf)(char*, int*, T*, int*, int*),
                       void (*potri)(char*, int*, T*, int*, int*), T* a, Index d) {
        int n = static_cast<int>(d), info = 0;
        char upper = 'U';
        if (!factorize(potrf, a, d)) return false;
        potri(&upper, &n, a, &n, &info);
        for (Index i = 0; i < d; ++i) {
            for (Index j = 0; j < i; ++j) a[j * d + i] = a[i * d + j];
        }
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
        find_column_values();
        singles_.assign(values_.begin(), values_.end());
    }

    // Some of the rows.
    Rows(const Rows& all, std::span<const Index> kept)
        : lapack_(all.lapack_), G_(length(kept)), q_(all.q_), sparse_(all.sparse_),
          column_value_(all.column_value_) {
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
                if (weighted()) values_.push_back(all.values_[i]);
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
    void multiply(const T* V, Index columns, T* U, LineVector<T>& scaled) const {
        if (!sparse_) {
            if constexpr (std::is_same_v<T, double>) lapack_.multiply(dense(), false, V, columns, U);
            return;
        }
        const T* const source = scale(V, columns, scaled);
        for_rows<T>(columns, [=, this]<bool WEIGHTED, Index N>(Index g, Index c) {
            typename Wide<T>::Type sum[N];
            load<N>(V + c, sum);
            gather<WEIGHTED, N>(g, source + c, columns, sum);
            store<N>(U + g * columns + c, sum);
        });
    }

    // V = Z' U
    template <class T>
    void multiply_transposed(const T* U, Index columns, T* V) const {
        if (!sparse_) {
            if constexpr (std::is_same_v<T, double>) lapack_.multiply(dense(), true, U, columns, V);
            return;
        }
        std::fill(V, V + q_ * columns, T(0));
        for_rows<T>(columns, [=, this]<bool WEIGHTED, Index N>(Index g, Index c) {
            typename Wide<T>::Type sum[N];
            load<N>(U + g * columns + c, sum);
            scatter<WEIGHTED, N>(g, sum, V + c, columns);
        });
        scale(columns, V);
    }

    // product = Z' (factor * (Z V)) for sparse rows: the rows in between stay in registers
    template <class T>
    void multiply_twice(const T* V, Index columns, T* product, const T* factor,
                        LineVector<T>& scaled) const {
        const T* const source = scale(V, columns, scaled);
        std::fill(product, product + q_ * columns, T(0));
        for_rows<T>(columns, [=, this]<bool WEIGHTED, Index N>(Index g, Index c) {
            typename Wide<T>::Type sum[N], own[N];
            load<N>(V + c, sum);
            load<N>(factor + g * columns + c, own);
            gather<WEIGHTED, N>(g, source + c, columns, sum);
            for (Index k = 0; k < N; ++k) sum[k] *= own[k];
            scatter<WEIGHTED, N>(g, sum, product + c, columns);
        });
        scale(columns, product);
    }

    // Set the lower triangle of Z' diag(weight) Z, weight >= 0, in a matrix of `stride` columns.
    //
    // A product of two sparse matrices would form the pattern of the result as well, which takes
    // five times as long where the result is dense.
    void gram(const double* weight, double* out, Index stride, Scratch<double>& weighted_rows) const {
        if (!sparse_) {
            weighted_rows.resize(G_ * q_);
            for (Index g = 0; g < G_; ++g) {
                const double root = std::sqrt(weight[g]);
                for (Index j = g * q_; j < (g + 1) * q_; ++j) weighted_rows[j] = root * dense_[j];
            }
            lapack_.gram({weighted_rows.data(), G_, q_}, out);  // stride == q
            return;
        }
        for (Index j = 0; j < q_; ++j) std::fill(out + j * stride, out + j * stride + q_, 0.0);
        for (Index g = 0; g < G_; ++g) {
            const Index start = indptr_[g], end = indptr_[g + 1];
            out[0] += weight[g];
            for (Index i = start; i < end; ++i) {
                const double entry = weighted() ? weight[g] * values_[i] : weight[g];
                double* row = out + indices_[i] * stride;
                row[0] += entry;
                if (weighted()) {
                    for (Index k = start; k <= i; ++k) row[indices_[k]] += entry * values_[k];
                } else {
                    for (Index k = start; k <= i; ++k) row[indices_[k]] += entry;
                }
            }
        }
        if (weighted()) return;
        for (Index j = 0; j < q_; ++j) {
            for (Index i = 0; i <= j; ++i) out[j * stride + i] *= column_value_[j] * column_value_[i];
        }
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
                const Index j = indices_[i];
                const double z = weighted() ? values_[i] : column_value_[j];
                sums[j] += weight[g] * z * z;
            }
        }
        return sums;
    }

    // Multiplications of a product with one column, and of the Gram matrix.
    double product_cost() const {
        return sparse_ ? static_cast<double>(indices_.size() + G_) : static_cast<double>(G_ * q_);
    }
    double gram_cost() const {
        double cost = 0.0;
        if (!sparse_) return static_cast<double>(G_ * q_) * q_;
        for (Index g = 0; g < G_; ++g) {
            const double size = static_cast<double>(indptr_[g + 1] - indptr_[g] + 1);
            cost += size * size;
        }
        return cost;
    }
    double largest_value() const {
        double largest = 1.0;
        for (const double x : weighted() ? values_ : column_value_) {
            largest = std::max(largest, std::abs(x));
        }
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
    // (q,) values of columns whose entries are all the same, as those of scaled counts of 0 and 1
    // are: products then add without multiplying. Empty if some column has several values.
    std::vector<double> column_value_;

    bool weighted() const { return column_value_.empty(); }

    template <class T>
    const T* values() const {
        if constexpr (std::is_same_v<T, float>) {
            return singles_.data();
        } else {
            return values_.data();
        }
    }

    // Call body.template operator()<weighted, N>(row, first column) for blocks of N vectors.
    template <class T, class Body>
    void for_rows(Index columns, Body body) const {
        for (Index g = 0; g < G_; ++g) {
            for_blocks<T>(columns, [&]<Index N>(Index c) {
                if (weighted()) {
                    body.template operator()<true, N>(g, c);
                } else {
                    body.template operator()<false, N>(g, c);
                }
            });
        }
    }

    template <Index N, class T>
    static void load(const T* from, typename Wide<T>::Type* to) {
        for (Index k = 0; k < N; ++k) to[k] = Wide<T>::load(from + k * Wide<T>::size);
    }

    template <Index N, class T>
    static void store(T* to, const typename Wide<T>::Type* from) {
        for (Index k = 0; k < N; ++k) Wide<T>::store(to + k * Wide<T>::size, from[k]);
    }

    // sum += row g times V; without WEIGHTED all values are 1
    template <bool WEIGHTED, Index N, class T>
    void gather(Index g, const T* V, Index columns, typename Wide<T>::Type* sum) const {
        using W = Wide<T>;
        const T* const value = values<T>();  // copies that no store can change
        const std::uint32_t* const index = indices_.data();
        for (Index i = indptr_[g], end = indptr_[g + 1]; i < end; ++i) {
            const T* const v = V + index[i] * columns;
            for (Index k = 0; k < N; ++k) {
                const auto x = W::load(v + k * W::size);
                sum[k] += WEIGHTED ? value[i] * x : x;
            }
        }
    }

    // V += row g' sum
    template <bool WEIGHTED, Index N, class T>
    void scatter(Index g, const typename Wide<T>::Type* sum, T* V, Index columns) const {
        using W = Wide<T>;
        const T* const value = values<T>();
        const std::uint32_t* const index = indices_.data();
        for (Index k = 0; k < N; ++k) {
            W::store(V + k * W::size, W::load(V + k * W::size) + sum[k]);
        }
        for (Index i = indptr_[g], end = indptr_[g + 1]; i < end; ++i) {
            T* const v = V + index[i] * columns;
            for (Index k = 0; k < N; ++k) {
                const auto x = WEIGHTED ? value[i] * sum[k] : sum[k];
                W::store(v + k * W::size, W::load(v + k * W::size) + x);
            }
        }
    }

    // Multiply the rows of V by the values of their columns, if these have single ones.
    template <class T>
    void scale(Index columns, T* V) const {
        if (weighted()) return;
        for (Index j = 0; j < q_; ++j) {
            const T value = static_cast<T>(column_value_[j]);
            for (Index c = j * columns; c < (j + 1) * columns; ++c) V[c] *= value;
        }
    }

    // The same, without changing V.
    template <class T>
    const T* scale(const T* V, Index columns, LineVector<T>& scaled) const {
        if (weighted()) return V;
        scaled.assign(V, V + q_ * columns);
        scale(columns, scaled.data());
        return scaled.data();
    }

    void find_column_values() {
        column_value_.assign(q_, 0.0);
        column_value_[0] = 1.0;
        for (std::size_t i = 0; i < indices_.size(); ++i) {
            double& value = column_value_[indices_[i]];
            if (value == 0.0) value = values_[i];
            if (value != values_[i] || value == 0.0) {  // a stored 0 counts as another value
                column_value_.clear();
                return;
            }
        }
        values_.clear();
    }
};

}  // namespace fgfm
