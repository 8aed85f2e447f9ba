"""The command line: ``fgfm COMMAND``.

Exit codes: 0 when all is done; 2 when an argument or a file is wrong, with a sentence that says
what; 130 when stopped by Ctrl-C. Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

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
    except KeyboardInterrupt:  # before or after a command, which sees to it itself
        sys.exit(130)
