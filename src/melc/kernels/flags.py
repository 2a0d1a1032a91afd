"""How kernels are compiled."""

# Lets the compiler fuse and reorder sums, which is what turns a loop into vector code, but not assume
# that NaN and infinity cannot happen: isnan stays honest.
FAST = frozenset({"contract", "reassoc", "nsz", "arcp"})

# The GIL is released, so plain Python threads work side by side; machine code is kept on disk.
COMPILE = {"cache": True, "nogil": True, "fastmath": set(FAST)}
