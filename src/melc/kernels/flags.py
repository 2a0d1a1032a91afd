"""Compiler options of the kernels."""

# Allows the compiler to fuse and reorder additions, which it needs to vectorise loops. It may not assume that there is
# no NaN or infinity, so isnan and isfinite still work.
FAST = frozenset({"contract", "reassoc", "nsz", "arcp"})

# Kernels release the GIL, so Python threads can run them in parallel. The machine code is cached on disk.
COMPILE = {"cache": True, "nogil": True, "fastmath": set(FAST)}
