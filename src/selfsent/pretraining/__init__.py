"""Pretraining: a vocabulary and an encoder from text alone."""
