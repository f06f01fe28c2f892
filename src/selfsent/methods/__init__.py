"""The learning methods, one file each, and their registry."""

from dataclasses import fields

from selfsent.errors import SettingsError, guess
from selfsent.methods.bootstrap import BOOTSTRAP
from selfsent.methods.cosine import COSINE
from selfsent.methods.cropping import CROPPING
from selfsent.methods.cross_encoder import CROSS_ENCODER
from selfsent.methods.ct import CT
from selfsent.methods.ct_inbatch import CT_INBATCH
from selfsent.methods.declutr import DECLUTR
from selfsent.methods.distil import DISTIL
from selfsent.methods.fastsent import FASTSENT
from selfsent.methods.flow import FLOW
from selfsent.methods.infomax import INFOMAX
from selfsent.methods.inverse_cloze import INVERSE_CLOZE
from selfsent.methods.method import Learner, Loss, Method
from selfsent.methods.mlm import MLM
from selfsent.methods.mnrl import MNRL
from selfsent.methods.neighbours import NEIGHBOURS
from selfsent.methods.ntxent import NTXENT
from selfsent.methods.quick_thoughts import QUICK_THOUGHTS
from selfsent.methods.sdae import SDAE
from selfsent.methods.sent2vec import SENT2VEC
from selfsent.methods.simcse import SIMCSE
from selfsent.methods.skip_thoughts import SKIP_THOUGHTS
from selfsent.methods.softmax import SOFTMAX
from selfsent.methods.triplet import TRIPLET
from selfsent.methods.tsdae import TSDAE
from selfsent.methods.whitening import WHITENING
from selfsent.methods.zscore import ZSCORE

_RELATIVES = (CROPPING, QUICK_THOUGHTS, INVERSE_CLOZE, DECLUTR)
_BASELINES = (SDAE, SKIP_THOUGHTS, SENT2VEC)
_UNSUPERVISED = (
    NEIGHBOURS,
    *_RELATIVES,
    FASTSENT,
    *_BASELINES,
    TSDAE,
    SIMCSE,
    CT,
    CT_INBATCH,
    INFOMAX,
    BOOTSTRAP,
    NTXENT,
    MLM,
    FLOW,
    WHITENING,
    ZSCORE,
)
_SUPERVISED = (SOFTMAX, COSINE, TRIPLET, MNRL, CROSS_ENCODER, DISTIL)
METHODS = {method.name: method for method in (*_UNSUPERVISED, *_SUPERVISED)}
SUPERVISED = tuple(method.name for method in _SUPERVISED)
"""Methods that learn from labels, or from pairs that were told to belong together."""
RELATIVES = tuple(method.name for method in _RELATIVES)
"""Methods that differ from `neighbours` in what they read of a document, and in little else."""


BASELINES = tuple(method.name for method in _BASELINES)
"""Methods of older papers, which others are held against; `compare` leaves them out."""


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


__all__ = ["BASELINES", "METHODS", "RELATIVES", "SUPERVISED", "Learner", "Loss", "Method", "get_method", "whose_option"]
