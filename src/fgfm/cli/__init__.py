"""The program ``fgfm``.

Exit codes: 0 on success; 2 if an argument or a file is invalid, with a message of one line; 130
after Ctrl-C, 129 and 143 after SIGHUP and SIGTERM. Results go to standard output, everything else
to standard error.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

__all__ = ["main"]

_INTERRUPTED = 130
_STOPPED = (_INTERRUPTED, 129, 143)  # 128 and the number of the signal, as in a shell


def main() -> None:
    """Run the program ``fgfm``."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        sys.exit("fgfm: the command line needs typer and rich: pip install 'fgfm[cli]'")
    from fgfm._utils.atomic import remove_unfinished

    for name in ("SIGTERM", "SIGHUP"):  # stopped like this, a program removes what is unfinished
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)
    try:
        from fgfm.cli._app import app

        app(prog_name="fgfm")
    except (KeyboardInterrupt, SystemExit) as stop:
        code = stop.code if isinstance(stop, SystemExit) else _INTERRUPTED
        if code not in _STOPPED:
            raise
        # Other threads may still compute: an orderly exit would wait for them, or abort.
        remove_unfinished()
        sys.stderr.flush()
        os._exit(int(code))


def _stop(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)


def __dir__() -> list[str]:
    return __all__
