"""Helpers shared by several packages.

- `fgfm._utils.validation`: validation of user input and its error messages;
- `fgfm._utils.blocks`: blocks of rows and threads;
- `fgfm._utils.parallel`: joblib jobs in threads, processes or on a cluster;
- `fgfm._utils.label_table`: target labels of any type as a 0/1 matrix, and back;
- `fgfm._utils.rows`: selecting rows of arrays, sparse matrices and data frames;
- `fgfm._utils.names`: comparing names of rows and columns of two tables;
- `fgfm._utils.atomic`: files that are written completely or not at all;
- `fgfm._utils.progress`: progress reporting.
"""
