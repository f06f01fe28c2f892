"""`selfsent queries`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from selfsent.cli.console import notice, show, shown
from selfsent.cli.options import CORPUS, Reading
from selfsent.cli.outputs import check_outputs
from selfsent.display import counted, shortened
from selfsent.errors import CorpusError, SettingsError
from selfsent.settings import setting

_SHOWN, _CELL = 5, 120
_EXTRACTION = "extraction"


@dataclass(kw_only=True)
class Queries(Reading):
    """Make queries for your texts, to train on with gpl.

      selfsent queries tickets.csv --text-column body --output queries.parquet
      selfsent queries tickets.csv --queries-from http://localhost:11434/v1 --llm llama3.2 --output queries.parquet

    They are parts of the texts (titles, questions, sentences), or what a language model would ask. A query that does
    not find its text is left out. Leave out the texts of an exam that you want to compare by. `selfsent train
    queries.parquet --text-columns query,text --method gpl` trains on them.

    Was the command interrupted? Give it again, and it goes on where it stopped.
    """

    main_options = "text_column title_column output queries_from llm count prompt round_trip exclude overwrite"

    corpus: tuple[str, ...] = CORPUS
    output: str = setting(MISSING, "a .csv, .tsv, .jsonl or .parquet file")
    title_column: str | None = setting(None, "column with titles, such as subject")
    queries_from: str = setting(_EXTRACTION, "parts of texts, or an OpenAI-compatible address (key: OPENAI_API_KEY)")
    llm: str = setting("", "the language model at that address, such as llama3.2")
    count: int = setting(3, "queries of a text, from a language model", minimum=1, maximum=20)
    prompt: str | None = setting(None, "file with another prompt: {text} and {count} stand for what they say")
    parallel: int = setting(4, "concurrent requests", minimum=1, maximum=64, flags=())
    timeout: float = setting(60.0, "seconds for an answer, before it is given up", above=0.0)
    round_trip: int = setting(10, "keep queries whose text is among the N first; 0 keeps all", minimum=0)
    base: str = setting("bundled", "what looks for the text")
    seed: int = setting(0, "of what is taken from the texts", minimum=0)
    overwrite: bool = setting(False, "throw away the file, and the answers that an interruption left")

    def run(self) -> None:
        """Make the queries, and show some."""
        from selfsent.augment.endpoint import Endpoint
        from selfsent.exam.queries import PROMPT, make_queries
        from selfsent.exam.texts import texts_of

        check_outputs({"--output": self.output}, [*self.corpus, self.prompt])
        if self.llm and self.queries_from == _EXTRACTION:
            raise SettingsError("`llm` is served somewhere: give its address as `queries_from`")
        prompt, title = PROMPT, self.title_column
        if self.prompt is not None:
            try:
                prompt = Path(self.prompt).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise CorpusError(f"{self.prompt} cannot be read as a prompt: {error}") from None
        endpoint = None
        if self.queries_from != _EXTRACTION:
            endpoint = Endpoint(self.queries_from, self.llm, self.timeout, parallel=self.parallel)
        texts = texts_of(
            self.read(self.corpus, metadata_columns=() if title is None else (title,), split_sentences=False), title
        )
        how: dict[str, Any] = {"endpoint": endpoint, "prompt": prompt}
        how |= self.values("count", "round_trip", "base", "seed", "overwrite")
        with endpoint or nullcontext(), shown("making queries") as progress:
            found = make_queries(texts, self.output, progress=progress, **how)
        for row in found.rows[:: max(1, len(found.rows) // _SHOWN)][:_SHOWN]:
            show(f"{shortened(row['query'], _CELL)}\n    {shortened(row['text'], _CELL)}")
        dropped = found.made - len(found.rows)
        fact = f"{counted(len(found.rows), 'query', 'queries')} in {self.output}"
        lost = f"{dropped:,} did not find their text, {counted(found.without, 'text')} have none"
        notice(f"{fact}; {lost}")
        if found.failed:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in found.failed.most_common())
            advice = f"; give a --timeout above {self.timeout:g}" if "too slow" in found.failed else ""
            notice(f"questions without an answer: {reasons}{advice}")
