"""The multilingual table that ships: multilingual-e5-small's vectors of texts in 28 languages, by least squares.

    python experiments/multilingual_text.py ... --output OUT/text
    python experiments/multilingual.py vectors --teacher E5 --output OUT     # continues after an interruption
    python experiments/multilingual.py table   --teacher E5 --output OUT     # OUT/bundled-multilingual
    python experiments/multilingual.py score   --teacher E5 --output OUT --data DATA --clones CLONES --lists LISTS \
        MODEL ...                                               # `teacher` is one

E5 is a sentence-transformers directory of multilingual-e5-small. Its prefixes are used as published: `query: ` for what
is short, `passage: ` for what is long. A translation aims at the mean of its own vector and its original's, so that the
languages share one space. The vocabulary holds whole frequent words and the pieces of E5's tokenizer that the other
words need. Rows are solved for as in `closed_form.py`, trained a little by its losses, and stored in 8 bits.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pyarrow.parquet as pq
import scipy.sparse as sparse
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share

from bundled import rounded, save_half
from closed_form import PASSAGES, counts_of, mean_of_courses, solved
from multilingual_text import LANGUAGES, described, held_out, tatoeba
from scipy.stats import spearmanr
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from selfsent.data.vector_files import unit
from selfsent.files import write_text
from selfsent.lexical.analyzer import Analyzer
from selfsent.stats.resampling import bootstrap, paired

AT_ONCE, LONG = 4096, 25
"""Texts whose vectors make one file, and words from which a text is a passage."""
STEMS = {"de": "german", "es": "spanish", "fr": "french", "it": "italian", "ru": "russian", "ja": None}
"""Languages of known-item search, and their stemmers."""
ROWS, WHOLE, COURSES, BITS = 64_000, 4_000, 1, 9
"""Tokens; whole words of each language among the candidates; courses of training; bits of a number as it ships."""


def texts_of(output: Path) -> dict[str, list[dict[str, str]]]:
    """The texts of each language, and the originals of translations as a language of their own."""
    found = {
        path.stem: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in sorted((output / "text").glob("*.jsonl"))
    }
    originals = dict.fromkeys(row["english"] for rows in found.values() for row in rows if row.get("english"))
    return {**found, "originals": [{"text": text, "kind": "message"} for text in originals]}


def prompted(row: dict[str, str]) -> str:
    """A text behind the teacher's prefix."""
    return ("passage: " if len(row["text"].split()) > LONG else "query: ") + row["text"]


def read_by_teacher(output: Path, teacher: Path) -> None:
    """The teacher's vectors of all texts; files that are there stay."""
    (output / "vectors").mkdir(exist_ok=True)
    torch.set_num_threads(1)
    model = SentenceTransformer(str(teacher), device="cpu", model_kwargs={"dtype": torch.bfloat16})
    model.max_seq_length = 160
    for language, rows in texts_of(output).items():
        for first in range(0, len(rows), AT_ONCE):
            file = output / "vectors" / f"{language}.{first // AT_ONCE:03}.npy"
            if file.is_file() or language == "originals":
                continue
            some = [prompted(row) for row in rows[first : first + AT_ONCE]]
            np.save(part := file.with_suffix(".part.npy"), encoded(model, some))
            part.rename(file)
            print(file.stem, flush=True)
    done, names = output / "vectors" / "originals.npz", [row["text"] for row in texts_of(output)["originals"]]
    known: dict[str, Any] = {}
    if done.is_file():
        before = np.load(done)
        known = dict(zip(before["texts"].tolist(), before["vectors"], strict=True))
    missing = [name for name in names if name not in known]
    for first in range(0, len(missing), AT_ONCE):
        some = missing[first : first + AT_ONCE]
        known.update(zip(some, encoded(model, ["query: " + name for name in some]), strict=True))
        print("originals", len(missing) - first, flush=True)
    np.savez(done, texts=np.array(names), vectors=np.stack([known[name] for name in names]))


def encoded(model: SentenceTransformer, texts: list[str]) -> np.ndarray:
    """Vectors of texts, (texts, d) in half precision."""
    return model.encode(texts, batch_size=128, convert_to_tensor=True).float().numpy().astype(np.float16)


def normalizer() -> normalizers.Normalizer:
    """Compatibility forms, lower case, and the Turkish dotted capital as one letter."""
    return normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace("İ", "i"), normalizers.Lowercase(), normalizers.Replace("\u0307", "")]
    )


def splitter() -> pre_tokenizers.PreTokenizer:
    """Words and signs; the piece that begins one begins with ▁."""
    parts = [
        pre_tokenizers.WhitespaceSplit(),
        pre_tokenizers.Punctuation(),
        pre_tokenizers.Digits(individual_digits=False),
    ]
    return pre_tokenizers.Sequence([*parts, pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")])


def unigrams(pieces: dict[str, float]) -> Tokenizer:
    """A tokenizer of pieces and their log probabilities."""
    known = [("[PAD]", 0.0), ("[UNK]", 0.0), *pieces.items()]
    tokenizer = Tokenizer(models.Unigram(known, unk_id=1, byte_fallback=False))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer(), splitter()
    tokenizer.add_special_tokens(["[PAD]", "[UNK]"])
    return tokenizer


def word_shares(texts: dict[str, list[dict[str, str]]]) -> dict[str, Counter[str]]:
    """Words of each language and their shares: of running text, and of the list of words by Zipf's law."""
    normal, split, found = normalizer(), splitter(), {}
    for language, rows in texts.items():
        running: Counter[str] = Counter()
        listed: Counter[str] = Counter()
        for row in rows:
            words = [word for word, _ in split.pre_tokenize_str(normal.normalize_str(row["text"]))]
            if row["kind"] == "word":
                listed.update({word: 1 / (len(listed) + 10) for word in words[:1]})
            else:
                running.update(words)
        found[language] = Counter()
        for counts in (running, listed):
            total = sum(counts.values()) or 1
            for word, count in counts.items():
                found[language][word] += count / total
    return found


def vocabulary(texts: dict[str, list[dict[str, str]]], teacher: Path) -> Tokenizer:
    """Frequent words of each language, and the teacher's pieces that the other words need.

    Two rounds of counting: with all candidates, and with those that were used most.
    """
    shares = word_shares(texts)
    model = json.loads((teacher / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    pieces = {piece: score for piece, score in model[4:] if piece == normalizer().normalize_str(piece) and piece != "▁"}
    for language, counts in shares.items():
        bare = language in ("ja", "zh")
        for word, share in counts.most_common(WHOLE):
            for name in {word, word[1:]} if bare else {word}:
                if name and len(name) < 20:
                    pieces[name] = max(pieces.get(name, -99.0), math.log(share / len(shares)))
    pieces["▁"] = -12.0
    letters = {sign for counts in shares.values() for word in counts for sign in word}
    pieces.update({sign: -16.0 for sign in letters if sign not in pieces})
    for most in (2 * ROWS, ROWS):
        tokenizer, used = unigrams(pieces), Counter(dict.fromkeys(letters, 1e-9))
        for counts in shares.values():
            words = list(counts)
            for word, read in zip(
                words, tokenizer.encode_batch([word.replace("▁", " ") for word in words]), strict=True
            ):
                used.update(dict.fromkeys(read.tokens, counts[word]))
        kept = [piece for piece, _ in used.most_common(most) if piece not in ("[PAD]", "[UNK]")]
        total = sum(used.values())
        pieces = {piece: round(math.log(used[piece] / total), 3) for piece in kept}
        pieces["▁"] = pieces.get("▁", -12.0)
    return unigrams(pieces)


def known_texts(output: Path, tokenizer: Tokenizer) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
    """Counts of tokens (texts, vocabulary), goals (texts, d) and the language of each text."""
    texts = texts_of(output)
    originals = np.load(output / "vectors" / "originals.npz")
    place = {text: row for row, text in enumerate(originals["texts"].tolist())}
    lines, goals, names = [], [], []
    for language, rows in texts.items():
        if language == "originals":
            files = [originals["vectors"]]
        else:
            files = [np.load(file) for file in sorted((output / "vectors").glob(f"{language}.*.npy"))]
        vectors = unit(np.concatenate(files).astype(np.float32))
        for number, row in enumerate(rows):
            if row.get("english"):
                vectors[number] += unit(originals["vectors"][place[row["english"]]][None].astype(np.float32))[0]
        lines += [row["text"] for row in rows]
        goals.append(unit(centred(vectors, np.array([row["kind"] == "word" for row in rows]))))
        kinds = {"word": "words", "passage": language + PASSAGES}
        names += [kinds.get(row["kind"], language) for row in rows]
    counts = counts_of(tokenizer, lines)
    some = np.flatnonzero(np.diff(counts.indptr))
    return counts[some], np.concatenate(goals)[some], np.array(names)[some]


def centred(vectors: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Vectors without the mean of their group: the teacher's cosines lie between 0.7 and 1, and tell the language."""
    found = vectors.copy()
    for group in np.unique(groups):
        found[groups == group] -= vectors[groups == group].mean(0)
    return found


def own_vectors(output: Path, tokenizer: Tokenizer, teacher: Path) -> np.ndarray:
    """The teacher's vectors of single tokens, (vocabulary, d)."""
    names = [piece for piece, _ in sorted(tokenizer.get_vocab().items(), key=lambda piece: piece[1])]
    file = output / "vectors" / "tokens.npz"
    if not file.is_file() or np.load(file)["texts"].tolist() != names:
        model = SentenceTransformer(str(teacher), device="cpu", model_kwargs={"dtype": torch.bfloat16})
        vectors = encoded(model, ["query: " + name.replace("▁", " ").strip() for name in names])
        np.savez(file, texts=np.array(names), vectors=vectors)
    vectors = np.load(file)["vectors"].astype(np.float32)
    return unit(centred(vectors, np.zeros(len(vectors))))


def make(output: Path, teacher: Path) -> None:
    """The table as it would ship: OUT/bundled-multilingual."""
    torch.manual_seed(0)
    known = output / "tokenizer.json"
    if not known.is_file():
        texts = {name: rows for name, rows in texts_of(output).items() if name != "originals"}
        vocabulary(texts, teacher).save(str(known))
    tokenizer = Tokenizer.from_file(str(known))
    told = known_texts(output, tokenizer)
    print(told[0].shape, "texts and tokens", flush=True)
    solution = solved(*told, own_vectors(output, tokenizer, teacher))
    print("solved", flush=True)
    np.savez(output / "solution.npz", *solution)
    weight = mean_of_courses(told, solution, COURSES, tokenizer)
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, rounded(weight, BITS).numpy())])
    save_half(model, output / "bundled-multilingual")


def stsb(model: Any, data: Path) -> dict[str, float]:
    """Spearman on STS-B's test pairs of each language that has them."""
    found = {}
    for language in ("en", "de", "es", "fr", "ar", "tr"):
        folder = data / ("PhilipMay/stsb_multi_mt" if language in ("en", "de", "es", "fr") else "Huertas97/mSTSb")
        columns = pq.read_table(folder / language / "test.parquet").to_pydict()
        one, other, score = (columns[name] for name in list(columns)[:3])
        cosines = (unit(model(one)) * unit(model(other))).sum(1)
        found[f"stsb-{language}"] = 100 * float(spearmanr(cosines, score).statistic)
    return found


def translations(model: Any, clones: Path) -> dict[str, float]:
    """Share of Tatoeba's sentences whose nearest neighbour is their translation, the mean of both directions."""
    found = {}
    for language, (*_, code) in LANGUAGES.items():
        if code:
            one, other = (unit(model(tatoeba(clones, code, side))) for side in (code, "eng"))
            scores, right = one @ other.T, np.arange(len(one))
            found[f"tatoeba-{language}"] = 50 * float(
                (scores.argmax(1) == right).mean() + (scores.argmax(0) == right).mean()
            )
    return found


def descriptions_of(lists: Path, language: str, across: bool) -> tuple[list[str], list[str]]:
    """Descriptions of packages kept apart, and their lines, which share no word with the English description.

    Args:
        lists: Debian's translated descriptions.
        language: of the lines, and of the descriptions unless `across`.
        across: whether descriptions are in English.
    """
    own = {package: (title, text) for package, title, text in described(lists, language) if held_out(package)}
    english = {package: text for package, _, text in described(lists, "en") if package in own}
    rows = [
        (english[name] if across else text, title)
        for name, (title, text) in own.items()
        if name in english and text != english[name] and not set(title.split()) & set(english[name].split())
    ]
    distinct = dict(row for row in rows if len(row[0]) > 40)
    return list(distinct)[:3000], list(distinct.values())[:3000]


def known_items(model: Any, lists: Path, language: str, across: bool = False, most: int = 3000) -> dict[str, Any]:
    """MRR@10 of finding a package's description by its line, by cosine, by BM25 and by both; paired intervals.

    Args:
        model: texts and their prefix to vectors.
        lists: Debian's translated descriptions.
        language: of the lines, and of the descriptions unless `across`.
        across: whether descriptions are in English.
        most: lines and descriptions, drawn at random.
    """
    texts, titles = descriptions_of(lists, language, across)
    drawn = np.random.default_rng(0).permutation(len(texts))[:most]
    texts, titles = [texts[row] for row in drawn], [titles[row] for row in drawn]
    dense = unit(model(titles, "query: ")) @ unit(model(texts, "passage: ")).T
    stemmed = Analyzer(None if across else STEMS[language])
    retriever = bm25s.BM25()
    retriever.index([stemmed(text) for text in texts], show_progress=False)
    words = [stemmed(title) for title in titles]
    nothing = np.zeros(len(texts), np.float32)
    lexical = np.stack([retriever.get_scores(each) if each else nothing for each in words])
    both = dense / dense.std(1, keepdims=True) + 1.5 * lexical / np.maximum(lexical.std(1, keepdims=True), 1e-9)
    ranks = {kind: reciprocal(scores) for kind, scores in (("cosine", dense), ("bm25", lexical), ("both", both))}
    found: dict[str, Any] = {"n": len(texts)} | {kind: float(each.mean()) for kind, each in ranks.items()}
    samples = {kind: bootstrap(partial(mean_of, each), len(each)) for kind, each in ranks.items()}
    for kind in ("cosine", "both"):
        ahead = paired(found[kind], found["bm25"], samples[kind], samples["bm25"])
        found[f"{kind}-bm25"] = [ahead.difference, ahead.low, ahead.high]
    return {f"known-{language}{'-en' if across else ''}": found}


def mean_of(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Means of resamples, (resamples,)."""
    return weights @ scores / weights.sum(1)


def reciprocal(scores: np.ndarray) -> np.ndarray:
    """Reciprocal ranks within ten of the diagonal, times 100, (queries,)."""
    ranks = (scores >= scores.diagonal()[:, None]).sum(1)  # ties are lost
    return 100 * np.where(ranks <= 10, 1 / ranks, 0)


def score(models: list[str], options: argparse.Namespace) -> None:
    """Print and keep what tables and the teacher reach."""
    for name in models:
        path = options.teacher if name == "teacher" else Path(name)
        loaded = SentenceTransformer(str(path), device="cpu").float()

        def model(
            texts: list[str], prompt: str = "query: ", known: Any = loaded, prompted: bool = name == "teacher"
        ) -> Any:
            return known.encode(texts, prompt=prompt if prompted else None, batch_size=64, show_progress_bar=False)

        found: dict[str, Any] = {}
        if "pairs" in options.sets:
            found |= stsb(model, options.data) | translations(model, options.clones)
        for language in STEMS:
            if "known" in options.sets:
                found |= known_items(model, options.lists, language, most=options.most)
                found |= known_items(model, options.lists, language, across=True, most=options.most)
            print(name, json.dumps(found), flush=True)
        write_text(options.output / f"scores-{Path(name).name}.json", json.dumps(found, indent=1))


def main() -> None:
    """Run one stage."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stage", choices=("vectors", "table", "score"))
    parser.add_argument("models", nargs="*", help="to be scored: directories, or `teacher`")
    parser.add_argument("--sets", nargs="*", default=["pairs", "known"], choices=("pairs", "known"))
    parser.add_argument("--most", type=int, default=3000, help="texts of a set of descriptions")
    for name in ("teacher", "output", "data", "clones", "lists"):
        parser.add_argument(f"--{name}", type=Path)
    options = parser.parse_args()
    if options.stage == "vectors":
        read_by_teacher(options.output, options.teacher)
    elif options.stage == "table":
        make(options.output, options.teacher)
    else:
        score(options.models, options)


if __name__ == "__main__":
    main()
