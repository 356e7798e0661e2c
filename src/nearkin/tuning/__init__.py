"""Tuning: the same number of trials for every method, chosen on validation classes.

    study         study, Studied: what `nearkin.study` returns; with `tune:` rows are tuned first

They are imported from these modules, so that no module is hidden by a call of its name.
"""
