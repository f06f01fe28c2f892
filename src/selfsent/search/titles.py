"""Titles of groups, written by a language model from their central texts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from selfsent.augment.endpoint import Endpoint, without_thoughts
from selfsent.data.corpus.clean import clean
from selfsent.files import cache_folder, read_json, write_json
from selfsent.progress import SILENT, Progress
from selfsent.resumable import key_of

CENTRAL, LONGEST = 8, 500
"""Texts of a group that the language model reads, and characters of each."""
_TITLE_LONGEST = 80
_TOGETHER = 16
"""Questions asked before their answers are kept."""
_PROMPT = """Texts:
{texts}

Frequent words: {words}

These texts are one group. What do they have in common? Answer with a title of two to six words in the language of the
texts, and nothing else."""
_MARK = re.compile(r"^(?:title\s*:\s*|[-*#\s]+)+", re.IGNORECASE)


def title_in(answer: str, prompt: str = "") -> str:
    """The title in the answer of a language model: its first line, cleaned, without quotes, marks and thoughts.

    Lines that announce one, or that it repeats of the prompt, are none; but it may be one of the texts.

    Examples:
        >>> title_in("Title: **Lost passwords**")
        'Lost passwords'
    """
    given = set(map(_bare, _PROMPT.splitlines()))
    said = without_thoughts(answer)
    lines = map(_bare, (said.replace(prompt, "") if prompt else said).splitlines())
    found = next((line for line in lines if line and line not in given and not line.endswith(":")), "")
    return next(iter(clean([found])[0]), "")[:_TITLE_LONGEST]


def _bare(line: str) -> str:
    return _MARK.sub("", line.strip()).strip(" \"'“”„`*.")


def group_titles(
    texts: Sequence[Sequence[str]],
    words: Sequence[Sequence[str]],
    endpoint: Endpoint,
    progress: Progress = SILENT,
) -> list[str]:
    """A title for each group; empty where the language model gives none.

    Answers are kept in the cache folder, by address, model and question, so that a group is asked about once.

    Args:
        texts: the central texts of each group.
        words: its telling words.
        endpoint: the language model.
        progress: told what goes where before texts are sent, and receives the number of titles.

    Raises:
        AugmenterError: the server refuses, or answers nothing.
    """
    prompts = [_prompt(own[:CENTRAL], told) for own, told in zip(texts, words, strict=True)]
    about = {"url": endpoint.url, "model": endpoint.model}
    files = [cache_folder() / "titles" / f"{key_of({**about, 'prompt': prompt})}.json" for prompt in prompts]
    left = [number for number, file in enumerate(files) if not read_json(file).get("title")]
    if left:
        sent = sum(len(prompts[number]) for number in left)
        asked = (
            f"{endpoint.url} is asked for {len(left):,} titles: {sent:,} characters of your texts go to that address"
        )
        progress.notice(f"{asked}, and nowhere else")
    for start in range(0, len(left), _TOGETHER):
        part = left[start : start + _TOGETHER]
        for number, answer in zip(part, endpoint.answers([prompts[number] for number in part]), strict=True):
            if title := title_in(answer, prompts[number]):
                files[number].parent.mkdir(parents=True, exist_ok=True)
                write_json(files[number], {"title": title})
        progress.count("writing titles", len(part), len(left))
    return [str(read_json(file).get("title", "")) for file in files]


def _prompt(texts: Sequence[str], words: Sequence[str]) -> str:
    lines = "\n".join(f"- {' '.join(text.split())[:LONGEST]}" for text in texts)
    return _PROMPT.replace("{words}", ", ".join(words)).replace("{texts}", lines)
