"""Whether an encoder suits a text, judged by the tokens it gives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from selfsent.data.corpus.clean import UNSPACED
from selfsent.lexical import language_code
from selfsent.models.bases import BUNDLED, table_for
from selfsent.models.encoding import token_ids
from selfsent.models.table import Table

if TYPE_CHECKING:
    from selfsent.models.encoding import Model

LOOKED_AT = 500
"""Number of sentences examined, from the first."""
UNKNOWN = 0.1
"""Share of unknown tokens from which an encoder can hardly read a text."""
PIECES = 1.6
"""Mean tokens of a word from which a text is of another language. Vocabularies of English have 1.05 to 1.4 for English
of 24 kinds, 1.85 to 3.2 for German, French, Spanish and Turkish; a multilingual one has 1.3 to 1.4 for three of these
(docs/log)."""
_FEWEST = 50
"""Minimum number of words needed for an average."""
_LINE = 20
"""Words tokenised together: even in many pieces they fit into an encoder."""
_ONE_LANGUAGE = range(8_000, 60_000)
"""Sizes of vocabularies that may be of one language: smaller ones split the words of any, larger ones know many."""
_WORD = re.compile(r"[^\W\d_]{3,}")


def reading_notice(model: Model, texts: Sequence[str]) -> str | None:
    """Notice shown when an encoder can hardly read some sentences, or was made for another language; mostly None."""
    if (share := unknown_share(model, texts)) >= UNKNOWN:
        fact = f"{share:.0%} of the tokens are unknown to this encoder"
        table = table_for(language_code(texts))
        advice = "it can hardly read this text, choose another one, or add `clean` where the texts hold markup or URLs"
        if table != BUNDLED:
            advice = f"it can hardly read this text, which {table} can"
        return f"{fact}: {advice}"
    if (pieces := pieces_of_a_word(model, texts)) >= PIECES and model.vocabulary_size in _ONE_LANGUAGE:
        fact = f"it splits the words of this text into {pieces:.1f} pieces each, where 1.1 to 1.4 are normal"
        table = table_for(language_code(texts))
        advice = "choose another one" if table == BUNDLED else f"{table} knows this one"
        return f"this encoder was probably made for another language: {fact}; {advice}"
    return None


def unknown_share(model: Model, texts: Sequence[str]) -> float:
    """Share of the tokens of some sentences that the encoder's tokenizer does not know, from 0 to 1."""
    ids = [token for sentence in token_ids(model, texts, special=False) for token in sentence]
    unknown = model.unknown if isinstance(model, Table) else model.tokenizer.unk_token_id
    return sum(token == unknown for token in ids) / max(1, len(ids))


def pieces_of_a_word(model: Model, texts: Sequence[str]) -> float:
    """Mean number of tokens of a word of three letters or more; 0 where there are too few words.

    Scripts without spaces, and names in capitals, are left out: only the tokenizer knows the words there.
    """
    words = [word for text in texts for word in _WORD.findall(text) if not (word.isupper() or UNSPACED.search(word))]
    lines = [" ".join(words[begin : begin + _LINE]) for begin in range(0, len(words), _LINE)]
    return sum(map(len, token_ids(model, lines, special=False))) / len(words) if len(words) >= _FEWEST else 0.0
