"""Run ``fgfm`` as ``python -m fgfm.cli``."""

from fgfm.cli import main

main()
