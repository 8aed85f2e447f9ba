// Views of arrays, and sums whose order is fixed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace fgfm {

using Index = std::int64_t;

// A dense matrix in C order that somebody else owns.
template <class T>
struct Matrix {
    T* data;
    Index rows;
    Index cols;

    T* operator[](Index i) const { return data + i * cols; }
    std::span<T> row(Index i) const { return {data + i * cols, static_cast<std::size_t>(cols)}; }
};

template <class T>
Index length(std::span<T> values) {
    return static_cast<Index>(values.size());
}

// Work space: an array whose new elements are not initialised, so that pages that are not used cost
// nothing. Resizing loses its contents.
template <class T>
class Scratch {
public:
    Scratch() = default;
    explicit Scratch(Index size) { resize(size); }

    void resize(Index size) {
        if (size > capacity_) {
            data_ = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(size));
            capacity_ = size;
        }
        size_ = size;
    }
    Index size() const { return size_; }
    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    T* begin() { return data(); }
    const T* begin() const { return data(); }
    T* end() { return data() + size_; }
    const T* end() const { return data() + size_; }
    T& operator[](Index i) { return data_[i]; }
    const T& operator[](Index i) const { return data_[i]; }
    operator std::span<T>() { return {data(), static_cast<std::size_t>(size_)}; }
    operator std::span<const T>() const { return {data(), static_cast<std::size_t>(size_)}; }

private:
    std::unique_ptr<T[]> data_;
    Index capacity_ = 0, size_ = 0;
};

// Long sums are split over LANES accumulators: term i goes to accumulator i % LANES, and the
// accumulators are added pairwise at the end. Compilers may not reorder floating-point sums by
// themselves (no -ffast-math); here the order is written out, so every bit of the result is the
// same on all instruction sets. `Lanes` is a vector type of GCC and Clang: its operations work lane
// by lane, comparisons give masks, and `mask ? a : b` selects.
constexpr Index LANES = 4;
typedef double Lanes __attribute__((vector_size(LANES * sizeof(double))));

inline Lanes load(const double* from) {
    Lanes result;
    std::memcpy(&result, from, sizeof result);
    return result;
}

inline Lanes load(const float* from) {
    return Lanes{from[0], from[1], from[2], from[3]};
}

// Load the first n < LANES values; the other lanes are `rest`.
template <class T>
Lanes load_some(const T* from, Index n, double rest) {
    Lanes result = {rest, rest, rest, rest};
    for (Index j = 0; j < n; ++j) result[j] = from[j];
    return result;
}

inline void store(double* to, Lanes value) { std::memcpy(to, &value, sizeof value); }

inline double add_lanes(Lanes lane) { return (lane[0] + lane[1]) + (lane[2] + lane[3]); }

// Call body(values) for all values of an array, LANES at a time; the last ones are filled up with
// `rest`.
template <class T, class Body>
inline void for_lanes(std::span<const T> values, double rest, Body body) {
    const Index n = length(values);
    Index i = 0;
    for (; i + LANES <= n; i += LANES) body(load(values.data() + i));
    if (i < n) body(load_some(values.data() + i, n - i, rest));
}

// sum_{i < n} a_i b_i, in two vectors of lanes and a tail
template <class T>
inline double dot(const T* a, const double* b, Index n) {
    Lanes first = {}, second = {};
    Index i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        first += load(a + i) * load(b + i);
        second += load(a + i + LANES) * load(b + i + LANES);
    }
    double tail = 0.0;
    for (; i < n; ++i) tail += a[i] * b[i];
    return add_lanes(first + second) + tail;
}

// Rules are padded with nodes of weight 0 to a multiple of LANES, so that loops over nodes have no
// remainder.
constexpr Index padded(Index nodes) { return (nodes + LANES - 1) / LANES * LANES; }

}  // namespace fgfm
