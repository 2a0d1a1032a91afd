"""Every compiled function: arrays and numbers in, arrays and numbers out.

Nothing compiles at import: there are no eager signatures, and the machine code is cached on disk.
"""

from melc.kernels.bins import (
    add_point_moments,
    bin_points,
    merge_moments,
    pair_errors,
    sample_spread,
    split_polynomials,
    sum_across,
    sum_within,
    weigh_points,
)
from melc.kernels.formulas import (
    Spread,
    assemble_divergence,
    is_floored,
    kernel_variances,
    silverman_factor,
    total_variance,
    variance_pull,
)
from melc.kernels.pairs import (
    bin_means,
    count_not_above,
    cross_sum,
    exact_divergence,
    exponentials,
    insertion_sort,
    log_density,
    nearest_distance,
    self_sum,
)
from melc.kernels.rows import (
    COLUMN_BLOCK,
    blas_block_rows,
    project_columns,
    project_mixed,
    project_rows,
    pull_columns,
    pull_mixed,
    pull_rows,
)

__all__ = [
    "COLUMN_BLOCK",
    "Spread",
    "add_point_moments",
    "assemble_divergence",
    "bin_means",
    "bin_points",
    "blas_block_rows",
    "count_not_above",
    "cross_sum",
    "exact_divergence",
    "exponentials",
    "insertion_sort",
    "is_floored",
    "kernel_variances",
    "log_density",
    "merge_moments",
    "nearest_distance",
    "pair_errors",
    "project_columns",
    "project_mixed",
    "project_rows",
    "pull_columns",
    "pull_mixed",
    "pull_rows",
    "sample_spread",
    "self_sum",
    "silverman_factor",
    "split_polynomials",
    "sum_across",
    "sum_within",
    "total_variance",
    "variance_pull",
    "weigh_points",
]
