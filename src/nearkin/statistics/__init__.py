"""Pure functions over seeds: intervals, paired differences and what may be said of them. The seed is the unit.

    unit          Row, common: the seeds, settings and folds that all rows have, and one value per seed
    intervals     mean_interval, class_interval
    paired        paired: the difference of two rows, its interval and its test; holm
    power         power, smallest: what a comparison could have shown
    verdict       judge: distinguishable, equivalent or undecided
    ranks         tournament, permuted_ranks, alike: ranks over experiments
    groups        groups: two kinds of methods against each other
    correlation   rank_correlation, least_methods

They are imported from these modules: some need scipy.stats, which is slow to import.
"""
