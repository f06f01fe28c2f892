"""The learning methods, one file for a paper or a family of them, and their registry."""

from dataclasses import fields

from selfsent.errors import SettingsError, guess
from selfsent.methods.bag_of_words import FASTSENT, SENT2VEC
from selfsent.methods.bootstrap import BOOTSTRAP, NTXENT
from selfsent.methods.cross_encoder import CROSS_ENCODER
from selfsent.methods.declutr import DECLUTR
from selfsent.methods.distil import DISTIL
from selfsent.methods.flow import FLOW
from selfsent.methods.infomax import INFOMAX
from selfsent.methods.method import Learner, Loss, Method
from selfsent.methods.mlm import MLM
from selfsent.methods.neighbours import CROPPING, MNRL, NEIGHBOURS
from selfsent.methods.recurrent import SDAE, SKIP_THOUGHTS
from selfsent.methods.sbert import COSINE, SOFTMAX, TRIPLET
from selfsent.methods.simcse import SIMCSE
from selfsent.methods.tsdae import TSDAE
from selfsent.methods.two_encoders import CT, CT_INBATCH, INVERSE_CLOZE, QUICK_THOUGHTS
from selfsent.methods.whitening import WHITENING, ZSCORE

METHODS = {
    method.name: method
    for method in (
        *(NEIGHBOURS, CROPPING, QUICK_THOUGHTS, INVERSE_CLOZE, DECLUTR, FASTSENT, SDAE, SKIP_THOUGHTS, SENT2VEC),
        *(TSDAE, SIMCSE, CT, CT_INBATCH, INFOMAX, BOOTSTRAP, NTXENT, MLM, FLOW, WHITENING, ZSCORE),
        *(SOFTMAX, COSINE, TRIPLET, MNRL, CROSS_ENCODER, DISTIL),
    )
}
"""All methods by name: those that read documents, single sentences, and labels or pairs."""


def get_method(name: str) -> Method:
    """The method of a name.

    Raises:
        SettingsError: there is none of that name.
    """
    if name not in METHODS:
        raise SettingsError(f"there is no method {name!r}; {guess(name, METHODS)}")
    return METHODS[name]


def whose_option(name: str) -> str:
    """Which methods have an option, for the end of an error's line; empty where none has."""
    having = [method.name for method in METHODS.values() if name in {item.name for item in fields(method.options)}]
    return f"it is an option of {', '.join(having)}" if having else ""


__all__ = ["METHODS", "Learner", "Loss", "Method", "get_method", "whose_option"]
