"""Run tests with kernels compiled under AddressSanitizer and UndefinedBehaviorSanitizer.

``python scripts/test_sanitized.py TESTS...`` builds the kernels with the sanitizers in the
environment ``build/sanitized``, and runs the quick tests among TESTS with them. An error of a
sanitizer ends the process, so that the tests fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "build" / "sanitized"


def main(tests: list[str]) -> None:
    """Build, then test; exit with the status of the tests."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        sys.exit("the sanitizers need GCC or Clang, and neither was found")
    # An environment of its own, since the editable fgfm of this one would be imported first; it
    # sees all other packages of this one.
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
    python = ENVIRONMENT / "bin" / "python"
    target = sysconfig.get_path("purelib", vars={"base": str(ENVIRONMENT)})
    (Path(target) / "packages.pth").write_text(sysconfig.get_path("purelib"))
    options = [
        "cmake.define.FGFM_SANITIZE=address,undefined",
        f"build-dir={ROOT / 'build' / 'sanitized-objects'}",
    ]
    settings = [word for option in options for word in ("-C", option)]
    pip = [str(python), "-m", "pip", "install", "-qq", "--no-deps", *settings, str(ROOT)]
    subprocess.run(pip, check=True)
    # Python itself is not instrumented: the runtime must be loaded before it, and with it the
    # library whose exceptions it intercepts.
    runtime = [
        subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    environment = os.environ | {
        "LD_PRELOAD": " ".join(runtime),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    code = f"import fgfm._kernels as k; assert {str(ENVIRONMENT)!r} in k.native.__file__"
    subprocess.run([str(python), "-c", code], env=environment, check=True)
    pytest = [str(python), "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    sys.exit(subprocess.run([*pytest, *tests], env=environment, cwd=ROOT).returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
