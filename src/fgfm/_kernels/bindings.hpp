// What the bindings share: arrays, and checks of their shapes and indices.
//
// Values are checked by the kernels, shapes and indices by the bindings: callers pass those of loaded
// models on. All functions release the GIL.
#pragma once

#include <numeric>
#include <tuple>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "checks.hpp"
#include "constants.hpp"
#include "constrained.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace fgfm;

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T>
using StridedArray = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;
using Labels = Array<std::int8_t, 2>;  // 0, set to 1 where a label is chosen

inline const nb::call_guard<nb::gil_scoped_release> without_gil;

template <class T>
std::span<T> span(const Array<T, 1>& array) {
    return {array.data(), array.size()};
}

template <class T>
Matrix<T> matrix(const Array<T, 2>& array) {
    return {array.data(), static_cast<Index>(array.shape(0)), static_cast<Index>(array.shape(1))};
}

// Require room for the decisions of n rows of m labels.
inline void check_decisions(std::size_t n, std::size_t m, const Labels& labels,
                            const Array<double, 1>& expected) {
    require(labels.shape(0) == n && labels.shape(1) == m && expected.size() == n,
            "labels must have a row and expected a number for each row of the input");
}

inline void check_constraints(const Constraints* constraints, std::size_t m) {
    require(!constraints || constraints->labels() == static_cast<Index>(m),
            "constraints must be those of the labels");
}

// Require that the m labels of a kernel are named by columns of `labels`.
inline void check_names(const Array<const Index, 1>& names, std::size_t m,
                        const Labels& labels, const Constraints* constraints) {
    require(names.size() == m, "names must have one number for each label");
    require_indices(span(names), 0, labels.shape(1), "names must be columns of labels");
    check_constraints(constraints, labels.shape(1));
}

// Require room for the labels chosen in rows that store `more` labels beside those of CSR.
inline void check_room(const Array<Index, 1>& found, const Array<const Index, 1>& indptr, Index more,
                       const Constraints* constraints) {
    std::vector<Index> sizes(indptr.size() - 1);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        sizes[i] = indptr.data()[i + 1] - indptr.data()[i] + more;
    }
    const Index most = constraints ? constraints->most_chosen(sizes)
                                   : std::accumulate(sizes.begin(), sizes.end(), Index{0});
    require(static_cast<Index>(found.size()) >= most, "found must have room for all chosen labels");
}
