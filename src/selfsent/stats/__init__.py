"""Metrics, intervals, paired tests and the shared classifier, independent of data sets."""
