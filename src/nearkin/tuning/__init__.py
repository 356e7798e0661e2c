"""Tuning: the same number of trials for every method, chosen on validation classes; and which loss for my images."""
