"""Every benchmark can be imported where its packages are installed."""

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import benchmarks

FOLDER = Path(benchmarks.__file__).parent
# Of no extra, or heavy:
OTHERS = {"lightgbm", "napkinxc", "numba", "torch", "xcolumns", "xgboost"}
NAMES = [module.name for module in walk_packages([str(FOLDER)], "benchmarks.")]


@pytest.mark.parametrize("name", NAMES)
def test_module_is_importable(name):
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in OTHERS:
            raise
        pytest.skip(f"{error.name} is not installed")
