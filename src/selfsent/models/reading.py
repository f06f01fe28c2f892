"""Whether an encoder was made for text like this, by what its tokenizer makes of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from selfsent.data.corpus.clean import UNSPACED
from selfsent.data.corpus.cleaners import HELD, without_signs
from selfsent.models.encoder import Encoder

LOOKED_AT = 500
"""Sentences that are looked at, the first ones."""
UNKNOWN = 0.1
"""Share of unknown tokens from which an encoder can hardly read a text."""
PIECES = 1.6
"""Pieces of a word, in the mean, from which a text is of another language. Vocabularies of English have 1.05 to 1.4 for
English of 24 kinds, 1.85 to 3.2 for German, French, Spanish and Turkish; a multilingual one has 1.3 to 1.4 for three of
these (docs/log)."""
_WORDS = 50
"""Words that such a mean needs."""
_TOGETHER = 20
"""Words that are tokenised together: even in many pieces they are no longer than what an encoder reads."""
_OF_ONE_LANGUAGE = range(8_000, 60_000)
"""Sizes of vocabularies that may be of one language: smaller ones split the words of any, larger ones know many."""
_WORD = re.compile(r"[^\W\d_]{3,}")


def complaint_of_text(model: Encoder, texts: Sequence[str]) -> str | None:
    """What to say where an encoder can hardly read some sentences, or was made for another language; mostly None."""
    share = unknown_share(model, texts)
    if share < UNKNOWN:
        pieces = pieces_of_a_word(model, texts)
        if pieces < PIECES or model.vocabulary_size not in _OF_ONE_LANGUAGE:
            return None
        return (
            f"this encoder was probably made for another language: it splits the words of this text into {pieces:.1f}"
            " pieces each, where 1.1 to 1.4 are usual; choose another one"
        )
    unknown = f"{share:.0%} of the tokens are unknown to this encoder"
    plain, found = without_signs(texts)
    if found and unknown_share(model, plain) < UNKNOWN:
        held = " and ".join(HELD[name] for name in found)
        return f"{unknown}, because the texts hold {held}: add --clean {','.join(found)}"
    return f"{unknown}: it can hardly read this text, choose another one"


def unknown_share(model: Encoder, texts: Sequence[str]) -> float:
    """The share of the tokens of some sentences that the encoder's tokenizer does not know, from 0 to 1."""
    ids = [token for sentence in _ids(model, texts) for token in sentence]
    return ids.count(model.tokenizer.unk_token_id) / max(1, len(ids))


def pieces_of_a_word(model: Encoder, texts: Sequence[str]) -> float:
    """Tokens that a word becomes, in the mean over words of three letters or more; 0 where there are too few of them.

    Scripts without spaces, and names in capitals, are left out: what a word is there the tokenizer alone knows.
    """
    words = [word for text in texts for word in _WORD.findall(text) if not (word.isupper() or UNSPACED.search(word))]
    if len(words) < _WORDS:
        return 0.0
    lines = [" ".join(words[begin : begin + _TOGETHER]) for begin in range(0, len(words), _TOGETHER)]
    return sum(map(len, _ids(model, lines))) / len(words)


def _ids(model: Encoder, texts: Sequence[str]) -> list[list[int]]:
    limit = model.tokenizer.model_max_length
    found: list[list[int]] = model.tokenizer(
        list(texts), add_special_tokens=False, truncation=True, max_length=limit, padding=False
    )["input_ids"]
    return found
