// Decisions from independent labels.
#include "bindings.hpp"
#include "floors.hpp"
#include "jaccard.hpp"
#include "marginals.hpp"
#include "marginals_columns.hpp"

template <class Bounds, class T>
Status bind_dense_rows(Array<const T, 2> proba, const Objective& objective, const Rules& rules,
                       Labels labels, Array<double, 1> expected) {
    check_decisions(proba.shape(0), proba.shape(1), labels, expected);
    return decide_dense_rows<Bounds>(matrix(proba), objective, rules, matrix(labels),
                                     expected.data());
}

template <class T>
Status bind_dense_columns(nb::ndarray<const T, nb::ndim<2>, nb::device::cpu> proba,
                          const Objective& objective, const Rules& rules,
                          nb::ndarray<std::int8_t, nb::ndim<2>, nb::device::cpu> labels,
                          Array<double, 1> expected, Array<std::uint8_t, 1> done) {
    const std::size_t n = proba.shape(0), m = proba.shape(1);
    require(
        labels.shape(0) == n && labels.shape(1) == m && expected.size() == m && done.size() == m,
        "labels must have the shape of proba, and expected and done that of a row");
    require(m < 2 || (proba.stride(1) == 1 && labels.stride(1) == 1),
            "the columns of proba and labels must be next to each other");
    return decide_dense_columns(
        proba.data(), proba.shape(0), proba.shape(1), proba.stride(0), objective, rules,
        {labels.data(), static_cast<Index>(labels.shape(0)), static_cast<Index>(labels.stride(0))},
        expected.data(), done.data());
}

template <class Bounds, class T>
Status bind_csr_rows(Array<const T, 1> data, Array<const Index, 1> indptr,
                     const Objective& objective, const Rules& rules, Array<std::int8_t, 1> chosen,
                     Array<double, 1> expected) {
    require_rows(span(indptr), expected.size(), data.size());
    require(chosen.size() == data.size(), "chosen must have one mark for each entry");
    return decide_csr_rows<Bounds>(data.data(), span(indptr), objective, rules, chosen.data(),
                                   expected.data());
}

template <class T>
void bind_marginals_type(nb::module_& module) {
    const auto bind_rows = [&]<class Bounds>(Bounds, const char* dense, const char* csr) {
        module.def(dense, &bind_dense_rows<Bounds, T>, without_gil, "proba"_a, "objective"_a,
                   "rules"_a, "labels"_a.noconvert(), "expected"_a.noconvert());
        module.def(csr, &bind_csr_rows<Bounds, T>, without_gil, "data"_a, "indptr"_a, "objective"_a,
                   "rules"_a, "chosen"_a.noconvert(), "expected"_a.noconvert());
    };
    bind_rows(Moments{}, "decide_dense_rows", "decide_csr_rows");
    bind_rows(JaccardMoments{}, "decide_jaccard_dense_rows", "decide_jaccard_csr_rows");
    module.def("decide_dense_columns", &bind_dense_columns<T>, without_gil, "proba"_a.noconvert(),
               "objective"_a, "rules"_a, "labels"_a.noconvert(), "expected"_a.noconvert(),
               "done"_a.noconvert());
}

void bind_marginals(nb::module_& module) {
    module.attr("NOT_PROBABILITY") = NOT_PROBABILITY;
    module.attr("SHORT") = SHORT;
    module.attr("SMALL") = SMALL;
    module.attr("TAIL") = TAIL;
    nb::class_<Objective>(module, "Objective")
        .def(nb::init<double, double, bool>(), "beta2"_a, "zero_division"_a, "nonempty"_a);
    nb::class_<Status>(module, "Status")
        .def_ro("row", &Status::row)
        .def_ro("code", &Status::code)
        .def_ro("factor", &Status::factor);
    nb::class_<Rules>(module, "Rules")
        .def(nb::init<>())
        .def_rw("fixed_reach", &Rules::fixed_reach)
        .def_rw("fixed_start", &Rules::fixed_start)
        .def_rw("fixed_log_z", &Rules::fixed_log_z)
        .def_rw("fixed_weight", &Rules::fixed_weight)
        .def_rw("fixed_z", &Rules::fixed_z)
        .def_rw("fixed_zeta", &Rules::fixed_zeta)
        .def_rw("fixed_u", &Rules::fixed_u)
        .def_rw("ratio", &Rules::ratio)
        .def_rw("start", &Rules::start)
        .def_rw("exponent", &Rules::exponent)
        .def_rw("weight", &Rules::weight)
        .def_rw("longest", &Rules::longest);
    module.def(
        "decide_floor_rows",
        [](Array<const double, 1> data, Array<const Index, 1> indptr, const Objective& objective,
           const Rules& rules, double precision, double recall, double rate,
           Array<const double, 2> missed, Index repeat, Array<std::int8_t, 1> chosen,
           Array<double, 1> expected, Array<double, 2> possible) {
            require_rows(span(indptr), expected.size(), data.size());
            require(chosen.size() == data.size(), "chosen must have one mark for each entry");
            require(possible.shape(0) == expected.size() && possible.shape(1) == 2,
                    "possible must have two numbers for each row");
            return decide_floor_rows(data.data(), span(indptr), objective, rules,
                                     {precision, recall}, {rate, matrix(missed), repeat},
                                     chosen.data(), expected.data(), matrix(possible));
        },
        without_gil, "data"_a, "indptr"_a, "objective"_a, "rules"_a, "precision"_a, "recall"_a,
        "rate"_a, "missed"_a, "repeat"_a, "chosen"_a.noconvert(), "expected"_a.noconvert(),
        "possible"_a.noconvert());
    bind_marginals_type<double>(module);
    bind_marginals_type<float>(module);
}
