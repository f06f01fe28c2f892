"""Draw an exam of search from a corpus' own texts.

A query is a part of a document that is taken out of it: its title, its first sentence if that is a question, or another
sentence. It must find the rest among all documents. Or it is what a mail answers, or the other text of a pair.

Who wrote a document repeats their own words, who looks for it does not know them. So a share of the words that query
and answer have in common is left out of the query. Otherwise an exam gives words more weight than judged queries do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.clean import letters, letters_of
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.hold_out import text_hashes
from selfsent.exam.exam import KINDS, Exam, Query, Text
from selfsent.lexical import Analyzer, language_of
from selfsent.stats.duplicates import connected, near_duplicates

MAX_DOCUMENTS = 10_000
"""Maximum number of documents that are searched."""
QUERIES = 1000
DROPPED = 0.4
"""Share of the words that query and answer share that is left out: chosen by judged answers (docs/log)."""
_MIN_WORDS = 5
"""Minimum length of a sentence that is asked for, in words."""

Choice = Callable[[Text, Sequence[str]], int]
"""A document and its sentences that may be asked for -> the place of one of these."""


def draw_exam(
    texts: Sequence[Text],
    most: int = QUERIES,
    *,
    paired: bool = False,
    seed: int = 0,
    kept: Collection[str] | None = None,
    dropped: float = DROPPED,
    searched: int = MAX_DOCUMENTS,
    choice: Choice | None = None,
) -> Exam:
    """Draw queries from documents: one from a document, each kind as often as the others as far as there are enough.

    Near-duplicates of the answer are right, too. A sentence that two documents hold, be it with other numbers, is no
    query, unless one quotes it from the other: both are right then, without it. Documents are taken in the order of a
    hash of their first sentence, so the same table gives the same exam, and a longer one most of it.

    Args:
        texts: the documents.
        most: queries.
        paired: titles are the other texts of pairs: they are the queries, and no part of the documents.
        seed: of the choice.
        kept: letters of sentences; queries are drawn from documents that hold no other. Other texts that
            would answer as well, such as near-duplicates, are left out.
        dropped: share of the words that query and answer share that is left out of the query; real pairs stay as they
            are.
        searched: documents at most, the first in order.
        choice: of the sentence that is asked for; by default it is drawn.

    Raises:
        DataError: nothing can be asked.
        SettingsError: fewer than two queries.

    Examples:
        >>> cars = Text("7", ("A red car",), ("It has four doors.", "Its colour is that of a rose."))
        >>> exam = draw_exam([cars, Text("8", ("Bicycles",), ("They have no doors.",))], 2)
        >>> sorted(query.text for query in exam.queries)
        ['A red car', 'Bicycles']
    """
    if most < 2:
        raise SettingsError(f"queries is {most}; it must be at least 2")
    order = np.argsort(text_hashes([text.sentences[0] for text in texts], seed), kind="stable")[:searched]
    texts = [texts[row] for row in order]
    one, other = near_duplicates([text.body for text in texts]).nonzero()
    alike = connected(one, other, len(texts))
    if kept is not None:
        texts, alike = _without_others(texts, alike, kept)
    drawing = _Drawing(texts, alike, paired, dropped, seed, choice)
    for row, text in enumerate(texts):
        if len(drawing.drawn) >= most:
            break
        if kept is not None and not all(letters(sentence) in kept for sentence in text.sentences):
            continue
        if paired:
            drawing.ask_titles(row)
        else:
            drawing.ask(row)
    if len(drawing.drawn) < 2 and kept is not None:
        problem = "no two documents can be asked for that hold nothing but sentences which the run kept apart"
        advice = "give other texts, or hold out more when training (hold_out)"
        raise DataError(f"{problem}: {advice}")
    if len(drawing.drawn) < 2:
        where = "no text has a title" if paired else "no text has a title, or several sentences that are its own"
        raise DataError(
            f"{where}, so nothing can be asked: name the column with titles (title_column), or that with the question"
            " and that with its answer (`pairs`), or the one that says which rows belong together (document_column)"
        )
    return Exam(drawing.left, tuple(drawing.drawn.values()))


class _Drawing:
    """The queries drawn so far, and what is left of the documents.

    Args:
        texts: (n,) the documents.
        alike: (n,) the group of near-duplicates of each.
        paired: whether titles are no part of the documents.
        dropped: share of shared words that is left out.
        seed: of the choice.
        choice: of a sentence.
    """

    def __init__(
        self,
        texts: Sequence[Text],
        alike: NDArray[np.int64],
        paired: bool,
        dropped: float,
        seed: int,
        choice: Choice | None,
    ) -> None:
        self._texts, self._alike, self._dropped, self._seed, self._choice = texts, alike, dropped, seed, choice
        self.left = [replace(text, titles=()) if paired else text for text in texts]
        """The documents without what was asked for."""
        self.drawn = dict[str, Query]()
        """The queries by their letters, in the order drawn."""
        self._asked, self._counts = set[int](), Counter[str]()
        self._members = defaultdict[int, list[int]](list)
        """The documents of each group."""
        self._holders, self._forms, self._titled = (defaultdict[str, set[int]](set) for _ in range(3))
        """The groups that hold a sentence, by its letters and by its form, and those that have a title."""
        for row, (text, group) in enumerate(zip(texts, alike.tolist(), strict=True)):
            self._members[group].append(row)
            for sentence in text.sentences:
                self._holders[letters(sentence)].add(group)
                self._forms[form_of(sentence)].add(group)
            for title in text.titles:
                self._titled[letters(title)].add(group)
        self._whole = {letters(each) for text in texts if len(text.sentences) < 3 for each in text.sentences}
        """Sentences that are all, or nearly all, of a document."""
        self._analyzer = Analyzer(language_of([text.body for text in texts]))

    def _right(self, groups: Collection[int]) -> list[int]:
        """The documents of groups, ascending."""
        return sorted(row for group in groups for row in self._members[group])

    def ask_titles(self, row: int) -> None:
        """Take the titles of a document as queries."""
        for title in self._texts[row].titles:
            right = self._right(self._titled[letters(title)])
            self.drawn.setdefault(letters(title), Query(title, KINDS[0], tuple(right)))

    def ask(self, row: int) -> None:
        """Draw a query from a document, if there is one, of the rarest kind so far; take it out of the answers."""
        text, group = self._texts[row], int(self._alike[row])
        if group in self._asked:
            return
        held = self._holders
        quoted = [
            s for s in text.quoted if letters(s) not in self._whole and not held.get(letters(s), set()) & self._asked
        ]
        found = _possible(replace(text, quoted=tuple(quoted)), self._forms, self._seed, self._choice)
        possible = {kind: each for kind, *each in found if letters(each[0]) not in self.drawn}
        if not possible:
            return
        kind = min(possible, key=self._counts.__getitem__)
        query, gone = possible[kind]
        groups = self._titled[letters(query)] if kind == "title" else {group}
        groups = groups | held.get(letters(query), set()) if kind == "quote" else groups
        self._asked |= groups
        self._counts[kind] += 1
        right = self._right(groups)
        for each in right:
            sentences = tuple(s for s in self.left[each].sentences if not gone or letters(s) != letters(gone))
            titles = self.left[each].titles * (kind != "title")
            self.left[each] = replace(self.left[each], titles=titles, sentences=sentences)
        fewer = _without_shared(query, self.left[row].body, self._dropped, self._analyzer, self._seed)
        query = query if letters(fewer) in self.drawn else fewer
        self.drawn[letters(query)] = Query(query, kind, tuple(right))


def _without_others(
    texts: Sequence[Text], alike: NDArray[np.int64], kept: Collection[str]
) -> tuple[list[Text], NDArray[np.int64]]:
    """The documents, with their groups, without any that is not kept and would answer for one that is."""
    whole = np.array([all(letters(sentence) in kept for sentence in text.sentences) for text in texts])
    groups = {*alike[whole].tolist()}
    titles = {letters(title) for text, each in zip(texts, whole, strict=True) if each for title in text.titles}
    answers = [any(letters(title) in titles for title in text.titles) for text in texts]
    left = whole | ~(np.isin(alike, [*groups]) | np.array(answers))
    return [text for text, each in zip(texts, left, strict=True) if each], alike[left]


def form_of(sentence: str) -> str:
    """A sentence's words with a letter in them: equal in sentences of a template that differ in numbers."""
    return " ".join(word for word in letters_of(sentence.split()) if any(map(str.isalpha, word)))


def _possible(
    text: Text, forms: dict[str, set[int]], seed: int, choice: Choice | None = None
) -> Iterator[tuple[str, str, str]]:
    """Possible queries for a document: the kind, the query, and the sentence to take out (none for a title)."""
    for title in text.titles[:1]:
        yield "title", title, ""
    for sentence in [s for s in text.quoted if len(s.split()) >= _MIN_WORDS][-1:]:
        yield "quote", sentence, sentence
    first, *rest = text.sentences
    own = [s for s in text.sentences if len(s.split()) >= _MIN_WORDS and len(forms[form_of(s)]) == 1]
    if rest and first in own and first.endswith(("?", "？", "؟")):
        yield "question", first, first
    if len(text.sentences) > 2 and own:
        rng = np.random.default_rng([seed, *text_hashes([text.body])])
        sentence = own[choice(text, own) if choice else rng.integers(len(own))]
        yield "sentence", sentence, sentence


def _without_shared(query: str, answer: str, dropped: float, analyzer: Analyzer, seed: int) -> str:
    """A query without a share of the words that the answer has, drawn at random; as it is if nothing would be left."""
    shared, words = {*analyzer(answer)}, query.split()
    chance = np.random.default_rng([seed, *text_hashes([query])]).random(len(words))
    kept = [word for word, each in zip(words, chance, strict=True) if each >= dropped or not shared & {*analyzer(word)}]
    left = " ".join(kept)
    return left if analyzer(left) else query
