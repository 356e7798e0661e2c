"""Tuning: the same number of trials for every method, chosen on validation classes; and which loss for my images.

    study         study, Studied: what `nearkin.study` returns; with `tune:` rows are tuned first
    choose        Choice, Candidate: the best loss for one's own images in the given minutes
    verdict       sentences, table, leads: what a choice may say

They are imported from these modules, so that no module is hidden by a call of its name.
"""
