"""The encoder that is trained, and how it is loaded from a base."""

from selfsent.encoder.bfloat16 import into_bfloat16
from selfsent.encoder.heads import put_head
from selfsent.encoder.int8 import into_int8
from selfsent.encoder.loading import load_encoder, transformer_alone
from selfsent.encoder.model import Encoder, Pooling
from selfsent.encoder.static import StaticEncoder
from selfsent.heads.options import POOLINGS

__all__ = [
    "POOLINGS",
    "Encoder",
    "Pooling",
    "StaticEncoder",
    "into_bfloat16",
    "into_int8",
    "load_encoder",
    "put_head",
    "transformer_alone",
]
