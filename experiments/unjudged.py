"""What others do without judgements: queries by a language model, and predictors of the performance of a query."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from selfsent.data.vector_files import inner
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.files import read_json, write_json
from selfsent.scorers.scorer import Scorer

WRITTEN, WORDS, BATCH = 40, 60, 20
"""Queries of a set, words of a document that the writer reads, documents at a time."""
DEPTH = 100
"""Depth of the predictors."""
PREDICTORS = ("max score", "WIG", "NQC")
PROMPT = "Write one short search query that the text below answers. Reply with the query only.\n\nText: {}"


def written(documents: Sequence[str], writer: Path | None, path: Path) -> list[list[Any]]:
    """Queries that a language model writes for WRITTEN of the documents: (row of the document, query).

    Args:
        documents: of a set.
        writer: a language model in GGUF; None if the file is there.
        path: file that keeps them.
    """
    if path.is_file():
        found: list[list[Any]] = read_json(path)["queries"]
        return found
    assert writer is not None
    tokenizer, model = _opened(writer)
    rows = np.random.default_rng(1).permutation(len(documents))[:WRITTEN]
    rows = sorted(rows.tolist(), key=lambda row: len(documents[row]))
    found = []
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        chats = [[{"role": "user", "content": PROMPT.format(_cut(documents[row]))}] for row in part]
        prompts = tokenizer.apply_chat_template(chats, add_generation_prompt=True, tokenize=False)
        inputs = tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
        with torch.inference_mode():
            made = model.generate(**inputs, max_new_tokens=24, do_sample=False, pad_token_id=tokenizer.pad_token_id)
        texts = tokenizer.batch_decode(made[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        found += [[row, query] for row, text in zip(part, texts, strict=True) if (query := _line(text))]
    write_json(path, {"queries": found})
    return found


@cache
def _opened(writer: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(writer.parent, gguf_file=writer.name, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(writer.parent, gguf_file=writer.name, dtype=torch.bfloat16).eval()
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return tokenizer, model


def _cut(text: str) -> str:
    return " ".join(text.split()[:WORDS])


def _line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "").strip('"*# ')


def predictions(scorer: Scorer, task: RetrievalTask) -> dict[str, NDArray[np.float64]]:
    """Predictors of the performance of a ranking on each query, of its scores normalised to mean 0 and deviation 1.

    Largest score; WIG, the mean of the first ten (Zhou and Croft, 2007); NQC, the deviation of the first hundred
    (Shtok et al., 2012).
    """
    queries, documents = scorer.query_document_vectors(task.queries, task.documents, search=True)
    scores = np.array(inner(queries, documents), np.float64)
    scores = (scores - scores.mean(1, keepdims=True)) / (scores.std(1, keepdims=True) + 1e-9)
    best = -np.sort(-scores, axis=1)[:, :DEPTH]
    return {"max score": best[:, 0], "WIG": best[:, :10].mean(1), "NQC": best.std(1)}
