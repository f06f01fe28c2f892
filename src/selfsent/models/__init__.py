"""Encoders: bases, heads, loading, inference and export."""
