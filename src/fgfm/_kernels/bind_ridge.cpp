// Ridge logistic regressions.
#include "bindings.hpp"
#include "ridge.hpp"

struct RidgeRows {
    std::shared_ptr<const Rows> rows;
};

void bind_ridge(nb::module_& module) {
    nb::class_<Lapack>(module, "Lapack")
        .def(
            "__init__",
            [](Lapack* self, nb::capsule dgemm, nb::capsule dsyrk, nb::capsule dpotrf) {
                new (self) Lapack{reinterpret_cast<decltype(Lapack::dgemm)>(dgemm.data()),
                                  reinterpret_cast<decltype(Lapack::dsyrk)>(dsyrk.data()),
                                  reinterpret_cast<decltype(Lapack::dpotrf)>(dpotrf.data())};
            },
            "dgemm"_a, "dsyrk"_a, "dpotrf"_a);
    nb::class_<RidgeRows>(module, "RidgeRows")
        .def(
            "__init__",
            [](RidgeRows* self, const Lapack& lapack, Array<const double, 2> Z) {
                new (self) RidgeRows{std::make_shared<const Rows>(lapack, matrix(Z))};
            },
            "lapack"_a, "Z"_a)
        .def(
            "__init__",
            [](RidgeRows* self, const Lapack& lapack, Array<const double, 1> data,
               Array<const std::uint32_t, 1> indices, Array<const Index, 1> indptr, Index p) {
                require(data.size() == indices.size() && indptr.size() > 0,
                        "indices must have one number for each entry, and indptr at least one");
                require_rows(span(indptr), indptr.size() - 1, data.size());
                require_indices(span(indices), 0, p, "indices must be features");
                new (self) RidgeRows{std::make_shared<const Rows>(lapack, data.data(),
                                                                  indices.data(), span(indptr), p)};
            },
            "lapack"_a, "data"_a, "indices"_a, "indptr"_a, "p"_a);
    nb::class_<RidgeOptions>(module, "RidgeOptions")
        .def(nb::init<std::vector<double>, bool, bool, double, Index, bool, Index>(), "penalties"_a,
             "penalize_intercept"_a, "reference_class"_a, "tol"_a, "max_iter"_a, "cholesky"_a,
             "batch"_a);
    module.def(
        "fit_ridge",
        [](const RidgeRows& rows, Array<const Index, 1> group, Array<const double, 1> weight,
           const std::vector<std::tuple<Array<const Index, 1>, Array<const Index, 1>>>& folds,
           Array<const std::int32_t, 2> code, Index K, Array<const double, 2> extra,
           const RidgeOptions& options, Array<double, 2> theta, Array<Index, 1> best,
           Array<double, 2> losses, Array<Index, 1> steps, Array<Index, 1> failed,
           Array<double, 2> held_out) {
            const std::size_t n = group.size(), targets = code.shape(0);
            require(weight.size() == n && code.shape(1) == n,
                    "weight and code must have one number for each row");
            require_indices(span(group), 0, rows.rows->count(), "group must be rows of Z");
            require_indices(std::span(code.data(), code.size()), 0, K, "code must be classes");
            for (const auto& [train, test] : folds) {
                require_indices(span(train), 0, n, "folds must be rows");
                require_indices(span(test), 0, n, "folds must be rows");
            }
            require(theta.shape(0) == targets && best.size() == targets &&
                        losses.shape(0) == targets && steps.size() == targets &&
                        failed.size() == targets &&
                        losses.shape(1) == folds.size() * options.penalties.size() &&
                        (held_out.size() == 0 ||
                         held_out.size() == targets * n * static_cast<std::size_t>(K)),
                    "results must have one row for each target");
            RidgeInputs inputs{rows.rows,    span(group), span(weight), {},
                               matrix(code), K,           matrix(extra)};
            for (const auto& [train, test] : folds)
                inputs.folds.push_back({span(train), span(test)});
            const RidgeResults results{matrix(theta), span(best),   matrix(losses),
                                       span(steps),   span(failed), matrix(held_out)};
            nb::gil_scoped_release release;
            RidgeFitter(inputs, options, results).fit();
        },
        "rows"_a, "group"_a, "weight"_a, "folds"_a, "code"_a, "K"_a, "extra"_a, "options"_a,
        "theta"_a.noconvert(), "best"_a.noconvert(), "losses"_a.noconvert(), "steps"_a.noconvert(),
        "failed"_a.noconvert(), "held_out"_a.noconvert());
}
