"""All functions compiled by numba. Their arguments and results are arrays and numbers.

Nothing is compiled at import: there are no eager signatures, and the machine code is cached on disk.
"""

from melc.kernels.ascent import advance, choose_direction, climb, grid_divergence, keep_pair, run_ascent
from melc.kernels.bins import (
    ORDER,
    add_point_moments,
    add_spread,
    bin_points,
    couple_bins,
    couple_nodes,
    couple_occupied,
    locate,
    map_bins,
    weigh_points,
)
from melc.kernels.features import add_features
from melc.kernels.flags import is_cached
from melc.kernels.hashing import (
    add_weights_by_hash,
    class_keys,
    hash_rows,
    hash_sparse_rows,
    hashes_in,
    select_rows,
    write_uniforms,
)
from melc.kernels.hats import add_curve_sums, find_entries, left_out_scores
from melc.kernels.lines import (
    MOST_NODES,
    PSEUDO_WIDTH,
    TABLE_ROWS,
    best_angle,
    evaluate_curve,
    line_densities,
    line_evidence,
    pair_gains,
)
from melc.kernels.pairs import (
    add_cross_pairs,
    add_self_pairs,
    bin_means,
    insertion_sort,
    log_density,
)
from melc.kernels.rays import first_changes
from melc.kernels.rows import (
    project_centred,
    project_columns,
    project_rows,
    pull_centred,
    pull_columns,
    pull_rows,
)
