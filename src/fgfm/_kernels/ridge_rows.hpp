// Rows of features behind a constant column, dense or sparse, and their products with many columns.
//
// Z is (G, q). Its first column is 1; sparse rows do not store it. Each column of a product with
// sparse rows is summed by itself, in the order of the entries, so that no bit depends on the
// columns beside it; products with dense rows are BLAS's.
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

// Entries of sparse rows, or of the rows of their transpose.
struct Entries {
    std::vector<std::uint32_t> indices;
    std::vector<Index> indptr{0};
    std::vector<double> values;
    std::vector<float> singles;  // the same in single precision

    Index rows() const { return static_cast<Index>(indptr.size()) - 1; }
    Index size() const { return static_cast<Index>(indices.size()); }

    template <class T>
    const T* data() const {
        if constexpr (std::is_same_v<T, float>) {
            return singles.data();
        } else {
            return values.data();
        }
    }

    // sum = [first +] row r times V, times the factors of the columns if there are any; the number
    // of columns is a multiple of Wide<T>::size. Without WEIGHTED all values are 1.
    template <bool WEIGHTED, class T>
    void multiply_row(Index r, const T* V, Index columns, T* out, const T* first,
                      const T* factor) const {
        using W = Wide<T>;
        const T* const value = data<T>();  // copies that no store can change
        const std::uint32_t* const index = indices.data();
        const Index start = indptr[r], end = indptr[r + 1];
        for_blocks<T>(columns, [=]<Index N>(Index c) {
            typename W::Type sum[N];
            for (Index k = 0; k < N; ++k) {
                sum[k] = first ? W::load(first + c + k * W::size) : typename W::Type{};
            }
            for (Index i = start; i < end; ++i) {
                const T* v = V + index[i] * columns + c;
                for (Index k = 0; k < N; ++k) {
                    if constexpr (WEIGHTED) {
                        sum[k] += value[i] * W::load(v + k * W::size);
                    } else {
                        sum[k] += W::load(v + k * W::size);
                    }
                }
            }
            if (factor) {
                for (Index k = 0; k < N; ++k) sum[k] *= W::load(factor + c + k * W::size);
            }
            for (Index k = 0; k < N; ++k) W::store(out + c + k * W::size, sum[k]);
        });
    }
};

class Rows {
public:
    // Dense rows with their constant column.
    Rows(const Lapack& lapack, Matrix<const double> Z)
        : lapack_(lapack), G_(Z.rows), q_(Z.cols), dense_(Z.data, Z.data + Z.rows * Z.cols) {}

    // Sparse rows in CSR, without their constant column, of p features.
    Rows(const Lapack& lapack, const double* data, const std::uint32_t* indices,
         std::span<const Index> indptr, Index p)
        : lapack_(lapack), G_(length(indptr) - 1), q_(p + 1), sparse_(true) {
        rows_.indptr.assign(indptr.begin(), indptr.end());
        rows_.indices.resize(indptr.back());
        for (Index i = 0; i < rows_.size(); ++i) rows_.indices[i] = indices[i] + 1;
        rows_.values.assign(data, data + rows_.size());
        find_column_values();
        finish();
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
        for (const Index g : kept) {
            for (Index i = all.rows_.indptr[g]; i < all.rows_.indptr[g + 1]; ++i) {
                rows_.indices.push_back(all.rows_.indices[i]);
                if (weighted()) rows_.values.push_back(all.rows_.values[i]);
            }
            rows_.indptr.push_back(rows_.size());
        }
        finish();
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

    // U = Z V, times the factors (G, columns) if there are any
    template <class T>
    void multiply(const T* V, Index columns, T* U, const T* factor, LineVector<T>& scaled) const {
        if (!sparse_) {
            if constexpr (std::is_same_v<T, double>) {
                lapack_.multiply(dense(), false, V, columns, U);
                if (factor) {
                    for (Index i = 0; i < G_ * columns; ++i) U[i] *= factor[i];
                }
            }
            return;
        }
        const T* source = V;
        if (!weighted()) {
            scaled.resize(q_ * columns);
            for (Index j = 0; j < q_; ++j) {
                const T value = static_cast<T>(column_value_[j]);
                for (Index c = j * columns; c < (j + 1) * columns; ++c) scaled[c] = value * V[c];
            }
            source = scaled.data();
        }
        for (Index g = 0; g < G_; ++g) {
            const T* own = factor ? factor + g * columns : nullptr;
            if (weighted()) {
                rows_.multiply_row<true>(g, source, columns, U + g * columns, V, own);
            } else {
                rows_.multiply_row<false>(g, source, columns, U + g * columns, V, own);
            }
        }
    }

    // V = Z' U
    template <class T>
    void multiply_transposed(const T* U, Index columns, T* V) const {
        if (!sparse_) {
            if constexpr (std::is_same_v<T, double>) {
                lapack_.multiply(dense(), true, U, columns, V);
            }
            return;
        }
        std::fill(V, V + columns, T(0));
        for (Index g = 0; g < G_; ++g) {
            for (Index c = 0; c < columns; ++c) V[c] += U[g * columns + c];
        }
        const T* none = nullptr;
        for (Index j = 1; j < q_; ++j) {
            T* out = V + j * columns;
            if (weighted()) {
                transposed_.multiply_row<true>(j, U, columns, out, none, none);
            } else {
                transposed_.multiply_row<false>(j, U, columns, out, none, none);
                const T value = static_cast<T>(column_value_[j]);
                for (Index c = 0; c < columns; ++c) out[c] *= value;
            }
        }
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
            const Index start = rows_.indptr[g], end = rows_.indptr[g + 1];
            out[0] += weight[g];
            for (Index i = start; i < end; ++i) {
                const double entry = weighted() ? weight[g] * rows_.values[i] : weight[g];
                double* row = out + rows_.indices[i] * stride;
                row[0] += entry;
                if (weighted()) {
                    for (Index k = start; k <= i; ++k) row[rows_.indices[k]] += entry * rows_.values[k];
                } else {
                    for (Index k = start; k <= i; ++k) row[rows_.indices[k]] += entry;
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
            for (Index i = rows_.indptr[g]; i < rows_.indptr[g + 1]; ++i) {
                const Index j = rows_.indices[i];
                const double z = weighted() ? rows_.values[i] : column_value_[j];
                sums[j] += weight[g] * z * z;
            }
        }
        return sums;
    }

    // Multiplications of a product with one column, and of the Gram matrix.
    double product_cost() const {
        return sparse_ ? static_cast<double>(rows_.size() + G_) : static_cast<double>(G_ * q_);
    }
    double gram_cost() const {
        double cost = 0.0;
        if (!sparse_) return static_cast<double>(G_ * q_) * q_;
        for (Index g = 0; g < G_; ++g) {
            const double size = static_cast<double>(rows_.indptr[g + 1] - rows_.indptr[g] + 1);
            cost += size * size;
        }
        return cost;
    }
    double largest_value() const {
        double largest = 1.0;
        for (const double x : weighted() ? rows_.values : column_value_) {
            largest = std::max(largest, std::abs(x));
        }
        return largest;
    }

private:
    Lapack lapack_;
    Index G_, q_;
    bool sparse_ = false;
    std::vector<double> dense_;  // (G, q)
    Entries rows_, transposed_;  // (G, q) and (q, G), without the constant column
    // (q,) values of columns whose entries are all the same, as those of scaled counts of 0 and 1
    // are: products then add without multiplying. Empty if some column has several values.
    std::vector<double> column_value_;

    bool weighted() const { return column_value_.empty(); }

    void find_column_values() {
        column_value_.assign(q_, 0.0);
        column_value_[0] = 1.0;
        for (Index i = 0; i < rows_.size(); ++i) {
            double& value = column_value_[rows_.indices[i]];
            if (value == 0.0) value = rows_.values[i];
            if (value != rows_.values[i] || value == 0.0) {  // a stored 0 counts as another value
                column_value_.clear();
                return;
            }
        }
        rows_.values.clear();
    }

    // Set the transpose, and the values in single precision.
    void finish() {
        transposed_.indptr.assign(q_ + 1, 0);
        for (const std::uint32_t j : rows_.indices) ++transposed_.indptr[j + 1];
        for (Index j = 0; j < q_; ++j) transposed_.indptr[j + 1] += transposed_.indptr[j];
        transposed_.indices.resize(rows_.size());
        transposed_.values.resize(rows_.values.size());
        std::vector<Index> next(transposed_.indptr.begin(), transposed_.indptr.end() - 1);
        for (Index g = 0; g < G_; ++g) {
            for (Index i = rows_.indptr[g]; i < rows_.indptr[g + 1]; ++i) {
                const Index to = next[rows_.indices[i]]++;
                transposed_.indices[to] = static_cast<std::uint32_t>(g);
                if (weighted()) transposed_.values[to] = rows_.values[i];
            }
        }
        for (Entries* entries : {&rows_, &transposed_}) {
            entries->singles.assign(entries->values.begin(), entries->values.end());
        }
    }
};

}  // namespace fgfm
