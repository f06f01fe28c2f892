"""An exam of search from a corpus' own texts: queries with known answers, in BEIR's layout.

A query is a part of a document that is taken out of it: its title, its first sentence if that is a question, or another
sentence. It must find the rest among all documents. Or it is what a mail answers, or the other text of a pair.

Who wrote a document repeats their own words, who looks for it does not know them. So a share of the words that query
and answer have in common is left out of the query. Otherwise an exam gives words more weight than judged queries do.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.data.corpus.clean import clean, letters
from selfsent.data.corpus.mail import quoted_mail
from selfsent.data.corpus.sentences import split_sentences
from selfsent.display import counted
from selfsent.errors import DataError, RunError, SettingsError
from selfsent.evaluation.hold_out import text_hashes
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.files import atomic_directory, write_json
from selfsent.lexical import Analyzer, language_of
from selfsent.models.bases import resolve
from selfsent.models.texts_read import TextsRead
from selfsent.stats.duplicates import connected, near_duplicates

NAME = "exam"
KINDS = ("pair", "title", "quote", "question", "sentence")
SPLITS = ("dev", "test")
"""Splits of the judgements: rankings are chosen on the first, and compared on the second."""
MOST = 10_000
"""Documents searched at most."""
QUERIES = 1000
FEW = 50
"""Number of queries below which the width of an interval is told."""
_DEVIATION = 40
"""Standard deviation of nDCG@10 over queries that is assumed before anything is scored, in points."""
DROPPED = 0.4
"""Share of the words that query and answer share that is left out: chosen by judged answers (docs/log)."""
_LEAST = 5
"""Minimum length of a sentence that is asked for, in words."""
RECORD = "exam.json"


@dataclass(frozen=True)
class Text:
    """A document to draw from.

    Args:
        name: its id.
        titles: of its rows in the input; usually one or none.
        sentences: of its body.
        quoted: sentences that it answers, and that are no part of its body.
    """

    name: str
    titles: tuple[str, ...]
    sentences: tuple[str, ...]
    quoted: tuple[str, ...] = ()

    @property
    def body(self) -> str:
        """The sentences as one text."""
        return " ".join(self.sentences)


Choice = Callable[[Text, Sequence[str]], int]
"""A document and its sentences that may be asked for -> the place of one of these."""


@dataclass(frozen=True)
class Query:
    """A query, its kind, and the documents that are right, by position."""

    text: str
    kind: str
    answers: tuple[int, ...]


@dataclass(frozen=True)
class Exam:
    """Documents to search, without the queries' own text, and queries.

    Args:
        documents: ids, titles and bodies.
        queries: in the order drawn. Every second one of a kind is of the split `dev`.
    """

    documents: Sequence[Text]
    queries: Sequence[Query]

    @property
    def task(self) -> RetrievalTask:
        """All queries as one task."""
        return self._task(self.queries)

    @property
    def halves(self) -> tuple[RetrievalTask, RetrievalTask]:
        """The queries of each split as a task, `dev` first."""
        dev, test = ([q for q, own in zip(self.queries, self.splits, strict=True) if own == each] for each in SPLITS)
        return self._task(dev), self._task(test)

    @property
    def splits(self) -> list[str]:
        """The split of each query: in turns, for each kind."""
        seen, found = Counter[str](), list[str]()
        for query in self.queries:
            found.append(SPLITS[seen[query.kind] % 2])
            seen[query.kind] += 1
        return found

    def _task(self, queries: Sequence[Query]) -> RetrievalTask:
        documents = [" ".join([*text.titles[:1], text.body]) for text in self.documents]
        grades = [dict.fromkeys(query.answers, 1.0) for query in queries]
        return RetrievalTask(NAME, [query.text for query in queries], documents, grades)

    @property
    def summary(self) -> str:
        """The numbers of queries, by kind, and of documents, in words."""
        kinds = Counter(query.kind for query in self.queries)
        each = ", ".join(f"{kinds[kind]:,} by {kind}" for kind in KINDS if kinds[kind])
        return f"{counted(len(self.queries), 'query', 'queries')} ({each}) among {len(self.documents):,} documents"

    @property
    def warning(self) -> str:
        """Warning about the precision of few queries; empty if there are enough."""
        half = 1.96 * _DEVIATION / max(1, len(self.queries) // 2) ** 0.5
        few = f"only {counted(len(self.queries), 'query', 'queries')}, half of them to score by"
        wide = f"a score's 95 % interval will be about ±{half:.0f} points"
        return f"{few}: {wide}" if len(self.queries) < FEW else ""

    def write(self, folder: Path, **about: Any) -> None:
        """Write `corpus.jsonl`, `queries.jsonl`, `qrels/dev.tsv` and `qrels/test.tsv`, and how it was made.

        Args:
            folder: it is replaced.
            **about: facts for the record, `exam.json`.

        Raises:
            OutputError: it cannot be written.
        """
        lines: dict[str, list[str]] = {split: ["query-id\tcorpus-id\tscore"] for split in SPLITS}
        for number, (query, split) in enumerate(zip(self.queries, self.splits, strict=True)):
            lines[split] += [f"q{number}\t{self.documents[answer].name}\t1" for answer in query.answers]
        corpus = [{"_id": t.name, "title": " ".join(t.titles[:1]), "text": t.body} for t in self.documents]
        queries = [{"_id": f"q{n}", "text": q.text, "kind": q.kind} for n, q in enumerate(self.queries)]
        with atomic_directory(folder) as new:
            (new / "qrels").mkdir()
            for name, rows in (("corpus", corpus), ("queries", queries)):
                text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
                (new / f"{name}.jsonl").write_text(text, encoding="utf-8")
            for split, each in lines.items():
                (new / "qrels" / f"{split}.tsv").write_text("\n".join(each) + "\n", encoding="utf-8")
            write_json(new / RECORD, {"made_of": self.summary, **about})


def is_exam(folder: Path) -> bool:
    """Whether a folder was written by `Exam.write`."""
    return (folder / RECORD).is_file() and (folder / "qrels").is_dir()


def texts_of(
    corpus: Corpus, title: str | None = None, name: str | None = None, mails: Sequence[str] = ()
) -> list[Text]:
    """The documents of a corpus: rows that share one, or else each row.

    Args:
        corpus: read with `metadata_columns`, not split.
        title: metadata column with titles.
        name: metadata column with ids; by default documents are counted.
        mails: metadata columns with mails as they were, whose quotes the corpus is without.

    Raises:
        DataError: an id is empty, or two documents have the same.
    """
    inputs = corpus.input_rows
    rows = np.asarray(inputs.corpus_rows)
    known = np.flatnonzero(rows >= 0)
    described = inputs.describe(known)
    titles = defaultdict[int, dict[str, None]](dict)
    if title is not None:
        for row, text in zip(rows[known].tolist(), clean(map(_plain, described[title]))[0], strict=True):
            titles[row] |= {text: None} if text else {}
    firsts = np.searchsorted(known, inputs.first)
    quoted = [""] * len(corpus)
    for column in mails:
        mail = clean(quoted_mail(_plain(described[column][first])) for first in firsts)[0]
        quoted = [before or found for before, found in zip(quoted, mail, strict=True)]
    names = [str(number) for number in range(len(corpus))]
    if name is not None:
        names = [" ".join(_plain(described[name][first]).split()) for first in firsts]
        if odd := next((each for each, count in Counter(names).items() if count > 1 or not each), None):
            raise DataError(f"column {name}: the id {odd!r} is empty or that of two texts; leave out id_column")
    groups: dict[int, list[int]] = defaultdict(list)
    for row, document in enumerate(range(len(corpus)) if corpus.documents is None else corpus.documents.tolist()):
        groups[document].append(row)
    texts, found = corpus.texts(), list[Text]()
    for first, *others in groups.values():
        sentences = [texts[row] for row in (first, *others)] if others else split_sentences(texts[first])
        quotes = split_sentences(quoted[first])
        found.append(Text(names[first], tuple(titles[first]), tuple(sentences), tuple(quotes)))
    return found


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


def unread(run: Path, texts: Sequence[Text]) -> set[str]:
    """The sentences, as their letters, of the documents of which a run has read none, by the record that it carries.

    Args:
        run: its directory, or a model's.
        texts: the documents.

    Raises:
        RunError: there is no such run, or it carries no record.
    """
    if not run.is_dir():
        raise RunError(f"{run} is no run of selfsent train")
    record = TextsRead.read(resolve(run))
    if not record:
        raise RunError(f"{run} carries no record of what it has read, as earlier versions did not: train it again")
    shares = record.shares([text.body for text in texts])
    return {letters(s) for text, share in zip(texts, shares, strict=True) if not share for s in text.sentences}


def draw_exam(
    texts: Sequence[Text],
    most: int = QUERIES,
    *,
    paired: bool = False,
    seed: int = 0,
    kept: Collection[str] | None = None,
    dropped: float = DROPPED,
    searched: int = MOST,
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
        kept: letters of sentences; queries are drawn from documents that hold no other. What is not kept and would
            answer as well, such as a near-duplicate, is left out.
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
    return " ".join(word for word in map(letters, sentence.split()) if any(map(str.isalpha, word)))


def _possible(
    text: Text, forms: dict[str, set[int]], seed: int, choice: Choice | None = None
) -> Iterator[tuple[str, str, str]]:
    """Possible queries for a document: the kind, the query, and the sentence to take out (none for a title)."""
    for title in text.titles[:1]:
        yield "title", title, ""
    for sentence in [s for s in text.quoted if len(s.split()) >= _LEAST][-1:]:
        yield "quote", sentence, sentence
    first, *rest = text.sentences
    own = [s for s in text.sentences if len(s.split()) >= _LEAST and len(forms[form_of(s)]) == 1]
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
