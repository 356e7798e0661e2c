"""Studies: grids of runs from one file, searched, scheduled and summed up.

    grid          read_study: a study from its file or tree
    cells         Study, Cell: rows x seeds x folds, each with its settings
    baselines     BASELINES, baseline_of: untrained rows beside the trained ones
    readings      READINGS, read: which epoch of a run a table shows
    joined        joined_metrics: the folds of one seed evaluated as one
    budgets       budget_of, unequal: what was not the same for all rows
    pace          Pace: how long runs take
    scheduler     schedule, Executor, Task: tasks to workers, each of them once
    executors     executor_of, following: local processes or Ray
    cluster       join, Watch, ClusterLost: a cluster of Ray
    runner        Job, jobs_of, write_study: the runs of a study as tasks
    carry_out     carry_out, Estimate: the runs of a study, with progress and what failed
    search        Search, searches_of: what is searched, and how
    searching     searching: one search, trial after trial
    search_rows   search_rows: all searches of a study side by side
    propose       propose, planned: the next trial
    trials        Ledger: the trials of a search in their database
    summary       rows_of, write_summary: the table of a study

They are imported from these modules, so that reading a study imports neither Optuna nor Ray.
"""
