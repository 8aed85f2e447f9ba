"""``python -m fgfm.cli``: the program ``fgfm``, where it is not on the path."""

from fgfm.cli import main

main()
