"""The name that saved models have for their module."""

from selfsent.models.heads.flow import Flow

__all__ = ["Flow"]
