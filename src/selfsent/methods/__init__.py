"""The learning methods, one file for a paper or a family of them, and their registry.

A method is the class of its options, such as `SimCSE(temperature=0.05)`; its `method` holds the rest. A file is
imported when one of its names is first used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from selfsent.errors import SettingsError, guess, near
from selfsent.extensions import announced, hint, load
from selfsent.lazily import imported_from

if TYPE_CHECKING:
    from selfsent.methods.bootstrap import Bootstrap as Bootstrap, NTXent as NTXent
    from selfsent.methods.ct import CT as CT, CTInBatch as CTInBatch
    from selfsent.methods.denoising import MLM as MLM, TSDAE as TSDAE
    from selfsent.methods.distil import Distil as Distil
    from selfsent.methods.infomax import InfoMax as InfoMax
    from selfsent.methods.least_squares import LeastSquares as LeastSquares
    from selfsent.methods.method import (
        Learner as Learner,
        Loss as Loss,
        Method as Method,
        MethodOptions as MethodOptions,
    )
    from selfsent.methods.postprocessing import Flow as Flow, Whitening as Whitening, ZScore as ZScore
    from selfsent.methods.ranking import GPL as GPL, MNRL as MNRL, Cropping as Cropping, Neighbours as Neighbours
    from selfsent.methods.sent2vec import Sent2Vec as Sent2Vec
    from selfsent.methods.simcse import SimCSE as SimCSE
    from selfsent.methods.supervised import (
        Cosine as Cosine,
        CrossEncoder as CrossEncoder,
        Softmax as Softmax,
        Triplet as Triplet,
    )

_HOMES = {
    "bootstrap": ("Bootstrap", "NTXent"),
    "ct": ("CT", "CTInBatch"),
    "denoising": ("MLM", "TSDAE"),
    "distil": ("Distil",),
    "infomax": ("InfoMax",),
    "least_squares": ("LeastSquares",),
    "method": ("Learner", "Loss", "Method", "MethodOptions"),
    "postprocessing": ("Flow", "Whitening", "ZScore"),
    "ranking": ("GPL", "MNRL", "Cropping", "Neighbours"),
    "sent2vec": ("Sent2Vec",),
    "simcse": ("SimCSE",),
    "supervised": ("Cosine", "CrossEncoder", "Softmax", "Triplet"),
}

__getattr__ = imported_from(__name__, _HOMES)

_OPTIONS = {
    "neighbours": "Neighbours",
    "cropping": "Cropping",
    "sent2vec": "Sent2Vec",
    "tsdae": "TSDAE",
    "simcse": "SimCSE",
    "ct": "CT",
    "ct-inbatch": "CTInBatch",
    "infomax": "InfoMax",
    "bootstrap": "Bootstrap",
    "ntxent": "NTXent",
    "mlm": "MLM",
    "flow": "Flow",
    "whitening": "Whitening",
    "zscore": "ZScore",
    "softmax": "Softmax",
    "cosine": "Cosine",
    "triplet": "Triplet",
    "mnrl": "MNRL",
    "gpl": "GPL",
    "cross-encoder": "CrossEncoder",
    "distil": "Distil",
    "least-squares": "LeastSquares",
}
"""The class of each method of this package."""


class _Own(Mapping[str, "Method"]):
    """The methods of this package by name."""

    def __getitem__(self, name: str) -> Method:
        method: Method = getattr(sys.modules[__name__], _OPTIONS[name]).method
        return method

    def __iter__(self) -> Iterator[str]:
        return iter(_OPTIONS)

    def __len__(self) -> int:
        return len(_OPTIONS)

    def __contains__(self, name: object) -> bool:
        return name in _OPTIONS


OWN: Mapping[str, Method] = _Own()
"""The methods of this package by name: for documents, for single sentences, and for labels or pairs."""


class _Methods(Mapping[str, "Method"]):
    """The methods of this package, then those of extensions, which are imported when they are looked up."""

    def __getitem__(self, name: str) -> Method:
        if name in OWN or name not in announced("methods"):
            return OWN[name]
        method: Method = load("methods", name).method
        return method

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*OWN, *announced("methods"))))

    def __len__(self) -> int:
        return len({*OWN, *announced("methods")})

    def __contains__(self, name: object) -> bool:
        return name in OWN or name in announced("methods")


METHODS: Mapping[str, Method] = _Methods()
"""All methods by name."""


def get_method(name: str) -> Method:
    """The method of a name.

    Raises:
        SettingsError: there is no such method.
    """
    if name not in METHODS:
        more = "" if near(name, METHODS) else hint("the baselines of papers come")
        raise SettingsError(f"there is no method {name!r}; {guess(name, METHODS)}{more}")
    return METHODS[name]


def method_of(options: MethodOptions) -> Method:
    """The method of an instance of its options, such as `SimCSE(temperature=0.05)`."""
    return type(options).method


def whose_option(name: str) -> str:
    """Hint for an error: the methods that have an option; empty where none has."""
    having = [method.name for method in METHODS.values() if name in {item.name for item in fields(method.options)}]
    return f"it is an option of {', '.join(having)}" if having else ""
