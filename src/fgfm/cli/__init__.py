"""The program ``fgfm``.

Exit codes: 0 on success; 2 if an argument or a file is invalid, with a message of one line; 130
after Ctrl-C. Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the program ``fgfm``."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        sys.exit("fgfm: the command line needs typer and rich: pip install 'fgfm[cli]'")
    try:
        from fgfm.cli._app import app

        app(prog_name="fgfm")
    except (KeyboardInterrupt, SystemExit) as stop:
        if isinstance(stop, SystemExit) and stop.code != 130:
            raise
        # Other threads may still compute: an orderly exit would wait for them, or abort.
        sys.stderr.flush()
        os._exit(130)


def __dir__() -> list[str]:
    return __all__
