"""The name that saved models have for their module."""

from selfsent.models.heads.cnn_pool import CnnPool

__all__ = ["CnnPool"]
