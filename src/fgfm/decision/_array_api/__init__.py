"""Building blocks of the array API implementations, for PyTorch, CuPy and JAX.

They compute the same as `fgfm._kernels`, following the array API standard: each step is an
operation on a whole block of rows, on the device that holds the arrays. The implementations
themselves are beside the others of the same problem, such as
`fgfm.decision._marginals_array_api`.

- `libraries`: the library that an array comes from;
- `backend`: namespace, device and precision of a computation, and transfers to the host;
- `precision`: full precision of float32 matrix products;
- `checks`: validation on the device;
- `problem`: blocks of rows, and constraints;
- `measure_f`, `measure_jaccard`: bounds and values of sets of independent labels;
- `power_sums`: products over small probabilities;
- `columns`: GFM from columns of Delta;
- `selection`: the best set size and its labels.
"""
