"""What a method reads of a corpus."""

from __future__ import annotations

from dataclasses import dataclass

from selfsent.data.views.noise import Noise
from selfsent.data.views.partners import Partners
from selfsent.data.views.positives import Passage


@dataclass(frozen=True)
class View:
    """What a method reads: a text column of the corpus, and the noise put on it; None leaves it as it is.

    With `partners` it reads other sentences of the corpus instead of those of the batch, and with a `passage` other
    sentences of the same document, joined as one. One that is `ready` brings the
    vectors that the learner's frozen part made of the sentences, once. With `joined`, the text of that column stands
    behind the first one, both as one input.
    """

    column: int = 0
    noise: Noise | None = None
    partners: Partners | None = None
    passage: Passage | None = None
    ready: bool = False
    joined: int | None = None
