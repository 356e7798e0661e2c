"""Comparing stored runs: rows of a table, what they have in common, and what may be said of their differences.

    result        compare, Compared: what `nearkin.compare` returns
    gather        gather, Gathered, Member: the runs of a study, a folder or a list, and a slice of them
    rows          methods_of, row_of: runs as rows of values per seed, setting and fold
    method        Method, kind_of: one row and its kind of loss
    compare       Comparison: all rows on one data set, by one metric and one reading
    verdicts      first_family, all_pairs, ranks: differences with their verdicts
    tournament    standing: ranks over experiments
    tables        leaderboard, differences, tournament_table
    claims        check_claims, claims_table: what the literature says, checked against stored runs
    words         first_words, family_words, kinds_words: the same in sentences

They are imported from these modules; `compare` of the module of that name makes the `Comparison`s that a result shows.
"""
