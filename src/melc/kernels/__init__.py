"""All functions compiled by numba, and the formulas between them. Their arguments and results are arrays and numbers.

Nothing is compiled at import: there are no eager signatures, and the machine code is cached on disk.
"""

from melc.kernels.ascent import advance, choose_direction, climb, remember
from melc.kernels.bins import (
    ORDER,
    add_point_moments,
    add_spread,
    bin_points,
    locate,
    merge_moments,
    sample_spread,
    split_polynomials,
    weigh_points,
)
from melc.kernels.certified import bin_sums, measure, weigh_binned
from melc.kernels.contents import draw_numbers, enter, hash_rows, hash_stored, keys_of, weigh_hashes
from melc.kernels.couplings import (
    couple_bins,
    couple_nodes,
    couple_occupied,
    pair_errors,
    put_charges,
    read_slopes,
    sum_bins,
)
from melc.kernels.curves import evaluate_curve
from melc.kernels.features import add_features
from melc.kernels.formulas import (
    AS_THEY_ARE,
    Shrunk,
    Spread,
    assemble_divergence,
    is_floored,
    kernel_variances,
    shrunk_variances,
    silverman_factor,
    total_variance,
    variance_pull,
)
from melc.kernels.grid import grid_divergence
from melc.kernels.lines import (
    MOST_NODES,
    PSEUDO_WIDTH,
    TABLE_ROWS,
    best_angle,
    line_densities,
    line_evidence,
    pair_gains,
)
from melc.kernels.pairs import (
    add_cross_pairs,
    add_self_pairs,
    bin_means,
    centre_points,
    count_not_above,
    cross_sum,
    exact_sums,
    exponentials,
    insertion_sort,
    log_density,
    nearest_distance,
    self_sum,
    thinned,
)
from melc.kernels.passes import project_and_bin, weigh_and_pull
from melc.kernels.rows import (
    COLUMN_BLOCK,
    blas_block_rows,
    project_centred,
    project_columns,
    project_mixed,
    project_rows,
    pull_centred,
    pull_columns,
    pull_mixed,
    pull_rows,
)
