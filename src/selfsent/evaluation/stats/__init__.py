"""Metrics, intervals, paired tests and the classifier that protocols share; they know no data set."""
