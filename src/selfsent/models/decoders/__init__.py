"""Decoders that rebuild a sentence from one vector."""
