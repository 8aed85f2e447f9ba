// Products of sparse rows with many columns at a time.
//
// The sums of up to BLOCK vectors of columns stay in registers. Each column is summed by itself, in
// the order of the rows and of their entries, so that no bit depends on the columns beside it.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "arrays.hpp"

namespace fgfm {

// Rows in CSR.
template <class T>
struct SparseRows {
    const T* data;
    const std::uint32_t* indices;
    std::span<const Index> indptr;

    Index rows() const { return length(indptr) - 1; }
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

constexpr Index BLOCK = 4;

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

// u = Z[g] V, times the factors of the columns if there are any; the number of columns is a multiple
// of Wide<T>::size.
template <class T>
inline void multiply_row(const SparseRows<T>& Z, Index g, const T* V, Index columns, T* u,
                         const T* factor = nullptr) {
    using W = Wide<T>;
    const T* const data = Z.data;  // copies that no store can change
    const std::uint32_t* const indices = Z.indices;
    const Index start = Z.indptr[g], end = Z.indptr[g + 1];
    for_blocks<T>(columns, [=]<Index N>(Index c) {
        typename W::Type sum[N] = {};
        for (Index i = start; i < end; ++i) {
            const T* v = V + indices[i] * columns + c;
            for (Index k = 0; k < N; ++k) sum[k] += data[i] * W::load(v + k * W::size);
        }
        if (factor) {
            for (Index k = 0; k < N; ++k) sum[k] *= W::load(factor + c + k * W::size);
        }
        for (Index k = 0; k < N; ++k) W::store(u + c + k * W::size, sum[k]);
    });
}

// product = Z V
inline void multiply_rows(const SparseRows<double>& Z, Matrix<const double> V,
                          Matrix<double> product) {
    constexpr Index most = BLOCK * Wide<double>::size;
    double u[most];
    Scratch<double> block;  // of columns, padded
    for (Index start = 0; start < V.cols; start += most) {
        const Index width = std::min(most, V.cols - start), columns = Wide<double>::padded(width);
        block.resize(V.rows * columns);
        std::fill(block.begin(), block.end(), 0.0);
        for (Index j = 0; j < V.rows; ++j) {
            std::copy_n(V[j] + start, width, block.data() + j * columns);
        }
        for (Index g = 0; g < product.rows; ++g) {
            multiply_row(Z, g, block.data(), columns, u);
            std::copy_n(u, width, product[g] + start);
        }
    }
}

}  // namespace fgfm
