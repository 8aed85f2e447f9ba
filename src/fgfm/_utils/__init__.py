"""Helpers shared by several packages: validation, blocks of rows, threads, files, progress."""
