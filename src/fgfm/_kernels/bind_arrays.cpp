// Transposing, grouping and sorting; bets.
#include "bindings.hpp"
#include "betting.hpp"
#include "grouping.hpp"
#include "ordering.hpp"
#include "transpose.hpp"

template <class T>
Strided<T> strided(const StridedArray<T>& array) {
    return {array.data(), static_cast<Index>(array.shape(0)), static_cast<Index>(array.shape(1)),
            array.stride(0), array.stride(1)};
}

template <class T>
void bind_transpose(StridedArray<const T> from, StridedArray<T> to) {
    require(from.shape(0) == to.shape(1) && from.shape(1) == to.shape(0),
            "to must have the shape of the transpose");
    transpose(strided(from), strided(to));
}

void bind_arrays(nb::module_& module) {
    const nb::call_guard<nb::gil_scoped_release> without_gil;
    const auto from = "from"_a.noconvert(), to = "to"_a.noconvert();
    module.def("transpose", &bind_transpose<double>, without_gil, from, to);
    module.def("transpose", &bind_transpose<float>, without_gil, from, to);
    module.def("transpose", &bind_transpose<std::int8_t>, without_gil, from, to);
    module.def(
        "bet",
        [](Array<const double, 2> values, Array<const double, 2> reference, double mean,
           Array<double, 1> wealth) {
            require(wealth.size() == values.shape(1), "wealth must have one number for each column");
            require(reference.shape(0) == values.shape(0) && reference.shape(1) == values.shape(1),
                    "reference must have the shape of values");
            bet(matrix(values), matrix(reference), mean, wealth.data());
        },
        without_gil, "values"_a, "reference"_a, "mean"_a, "wealth"_a.noconvert());
    module.def(
        "group_rows",
        [](Array<const double, 2> X, Index most, Array<Index, 1> group) {
            require(group.size() == X.shape(0), "group must have one number for each row of X");
            return group_rows(matrix(X), most, group.data());
        },
        without_gil, "X"_a, "most"_a, "group"_a.noconvert());
    module.def(
        "sort_descending",
        [](Array<double, 1> value, Array<Index, 1> place, bool repair) {
            require(value.size() == place.size(), "place must have one number for each value");
            std::vector<double> spare(value.size());
            std::vector<Index> spare_place(value.size()), count(value.size() + 2);
            if (repair) {
                repair_order(span(value), span(place), spare.data(), spare_place.data());
            } else {
                sort_descending(span(value), span(place), spare.data(), spare_place.data(),
                                count.data());
            }
        },
        "value"_a.noconvert(), "place"_a.noconvert(), "repair"_a);
}
