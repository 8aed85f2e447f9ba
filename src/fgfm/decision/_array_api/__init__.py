"""Decisions on arrays of other libraries, where they are: PyTorch, CuPy, JAX.

The functions follow the array API standard. They compute what `fgfm._kernels` compute; here every
step is an operation on a block of rows.
"""
