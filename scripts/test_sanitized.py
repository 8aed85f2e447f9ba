"""Run tests with kernels compiled under AddressSanitizer and UndefinedBehaviorSanitizer.

``python scripts/test_sanitized.py TESTS...`` builds the kernels with the sanitizers into
``build/sanitized``, and runs the quick tests among TESTS with them. An error of a sanitizer ends
the process, so that the tests fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "build" / "sanitized"


def main(tests: list[str]) -> None:
    """Build, then test; exit with the status of the tests."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        sys.exit("the sanitizers need GCC or Clang, and neither was found")
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target", str(TARGET)]
    options = [
        "-C",
        "cmake.define.FGFM_SANITIZE=address,undefined",
        "-C",
        "cmake.build-type=Debug",
    ]
    shutil.rmtree(TARGET, ignore_errors=True)
    subprocess.run([*pip, *options, str(ROOT)], check=True)
    # Python itself is not instrumented: the runtime must be loaded before it.
    runtime = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    environment = os.environ | {
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "PYTHONPATH": os.pathsep.join(map(str, [TARGET, ROOT, ROOT / "tests"])),
    }
    code = f"import fgfm._kernels as k; assert {str(TARGET)!r} in k.native.__file__"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    pytest = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    sys.exit(subprocess.run([*pytest, *tests], env=environment, cwd=ROOT).returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
