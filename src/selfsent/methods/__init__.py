"""The learning methods, one file for a paper or a family of them, and their registry.

A method is the class of its options: `SimCSE(temperature=0.05)`, whose `method` says the rest.
"""

from dataclasses import fields

from selfsent.errors import SettingsError, guess
from selfsent.methods.bag_of_words import FastSent as FastSent
from selfsent.methods.bag_of_words import Sent2Vec as Sent2Vec
from selfsent.methods.bootstrap import Bootstrap as Bootstrap
from selfsent.methods.bootstrap import NTXent as NTXent
from selfsent.methods.cross_encoder import CrossEncoder as CrossEncoder
from selfsent.methods.declutr import DeCLUTR as DeCLUTR
from selfsent.methods.distil import Distil as Distil
from selfsent.methods.flow import Flow as Flow
from selfsent.methods.infomax import InfoMax as InfoMax
from selfsent.methods.method import Learner as Learner
from selfsent.methods.method import Loss as Loss
from selfsent.methods.method import Method as Method
from selfsent.methods.method import MethodOptions as MethodOptions
from selfsent.methods.mlm import MLM as MLM
from selfsent.methods.neighbours import MNRL as MNRL
from selfsent.methods.neighbours import Cropping as Cropping
from selfsent.methods.neighbours import Neighbours as Neighbours
from selfsent.methods.recurrent import SDAE as SDAE
from selfsent.methods.recurrent import SkipThoughts as SkipThoughts
from selfsent.methods.sbert import Cosine as Cosine
from selfsent.methods.sbert import Softmax as Softmax
from selfsent.methods.sbert import Triplet as Triplet
from selfsent.methods.simcse import SimCSE as SimCSE
from selfsent.methods.tsdae import TSDAE as TSDAE
from selfsent.methods.two_encoders import CT as CT
from selfsent.methods.two_encoders import CTInBatch as CTInBatch
from selfsent.methods.two_encoders import InverseCloze as InverseCloze
from selfsent.methods.two_encoders import QuickThoughts as QuickThoughts
from selfsent.methods.whitening import Whitening as Whitening
from selfsent.methods.whitening import ZScore as ZScore

METHODS = {
    options.method.name: options.method
    for options in (
        *(Neighbours, Cropping, QuickThoughts, InverseCloze, DeCLUTR, FastSent, SDAE, SkipThoughts, Sent2Vec),
        *(TSDAE, SimCSE, CT, CTInBatch, InfoMax, Bootstrap, NTXent, MLM, Flow, Whitening, ZScore),
        *(Softmax, Cosine, Triplet, MNRL, CrossEncoder, Distil),
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


def method_of(options: MethodOptions) -> Method:
    """The method of an instance of its options, such as `SimCSE(temperature=0.05)`."""
    return type(options).method


def whose_option(name: str) -> str:
    """Which methods have an option, for the end of an error's line; empty where none has."""
    having = [method.name for method in METHODS.values() if name in {item.name for item in fields(method.options)}]
    return f"it is an option of {', '.join(having)}" if having else ""
