"""Tiny encoders of every architecture, with random weights and tokenizers of their own, made on the spot."""

import csv
import doctest
import json
import random
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SIZE = 32
LONGEST = 96
VOCABULARY = 240
CONSONANTS, VOWELS = "bdfgklmnprst", "aeiou"
INNER = [f"##{letter}" for letter in CONSONANTS + VOWELS]
"""Listed for the trainer of word pieces, which numbers what it finds by itself in another order in every process."""


def has_lora():
    """Whether peft is new enough for this transformers: a release of one may come before that of the other."""
    from selfsent.errors import SettingsError
    from selfsent.models.lora import require_peft

    try:
        require_peft()
    except SettingsError:
        return False
    return True


def make_sentences(count, seed=0, words=(2, 14)):
    """Distinct sentences of made-up words, which a small tokenizer splits into one to four tokens."""
    rng = random.Random(seed)
    syllables = [consonant + vowel for consonant in CONSONANTS for vowel in VOWELS]
    lexicon = ["".join(rng.choice(syllables) for _ in range(rng.randint(1, 4))) for _ in range(150)]
    found = {}
    while len(found) < count:
        found[" ".join(rng.choice(lexicon) for _ in range(rng.randint(*words)))] = None
    return list(found)


def _word_pieces():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", continuing_subword_prefix="##"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCABULARY, special_tokens=[*special.values(), *INNER], show_progress=False
    )
    return tokenizer, trainer, special


def _byte_pairs():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    special = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=list(special.values()), show_progress=False)
    return tokenizer, trainer, special


def _pieces():
    """As sentencepiece has it: a word begins with a bar, and only the first of its tokens does."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = {"pad": "<pad>", "cls": "<s>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}
    trainer = trainers.UnigramTrainer(
        vocab_size=VOCABULARY, special_tokens=list(special.values()), unk_token="<unk>", show_progress=False
    )
    return tokenizer, trainer, special


def _rounded(learner):
    """Its Unigram model without the last digits of its scores, which differ from one training to the next."""
    found = json.loads(learner.to_str())["model"]
    return models.Unigram([(piece, round(score, 6)) for piece, score in found["vocab"]], found["unk_id"])


def make_tokenizer(kind="word pieces", wrap=True):
    """A fast tokenizer trained on made-up sentences.

    Args:
        kind: `word pieces`, `byte pairs` or `pieces`.
        wrap: whether it puts its special tokens around a sentence; "behind" for the last one alone.
    """
    from transformers import PreTrainedTokenizerFast

    tokenizer, trainer, special = {"word pieces": _word_pieces, "byte pairs": _byte_pairs, "pieces": _pieces}[kind]()
    learner = Tokenizer.from_str(tokenizer.to_str())
    learner.train_from_iterator(make_sentences(400), trainer)
    tokenizer.model = learner.model if kind != "pieces" else _rounded(learner)
    tokenizer.add_special_tokens(list(special.values()))
    first, last, typed = special["cls"], special["sep"], int(kind == "word pieces")
    if wrap == "behind":
        ids = [(last, tokenizer.token_to_id(last))]
        tokenizer.post_processor = processors.TemplateProcessing(f"$A {last}", f"$A {last} $B {last}", ids)
    elif wrap:
        ids = [(token, tokenizer.token_to_id(token)) for token in (first, last)]
        tokenizer.post_processor = processors.TemplateProcessing(
            f"{first} $A {last}", f"{first} $A {last} $B:{typed} {last}:{typed}", ids
        )
    names = {f"{name}_token": token for name, token in special.items()}
    inputs = ["input_ids", *(["token_type_ids"] if typed else []), "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=LONGEST, model_input_names=inputs, **names
    )


_COMMON = {
    "hidden_size": SIZE,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 2 * SIZE,
    "max_position_embeddings": LONGEST + 8,
    "initializer_range": 0.1,
}

# Of each architecture: its tokenizer, and what its configuration says beside or instead of the common values.
ARCHITECTURES = {
    "bert": ("word pieces", {}),
    "roberta": ("byte pairs", {"type_vocab_size": 1}),
    "albert": ("pieces", {"embedding_size": 16}),
    "distilbert": ("word pieces", {"dim": SIZE, "n_layers": 2, "n_heads": 2, "hidden_dim": 2 * SIZE}),
    "mpnet": ("byte pairs", {}),
    "deberta-v2": ("pieces", {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16}),
    "modernbert": ("byte pairs", {"global_attn_every_n_layers": 2, "local_attention": 16}),
    "electra": ("word pieces", {"embedding_size": 16}),
    "xlm-roberta": ("pieces", {"type_vocab_size": 1}),
    "eurobert": ("byte pairs", {}),
    "gpt2": ("byte pairs", {"n_embd": SIZE, "n_layer": 2, "n_head": 2, "n_positions": LONGEST}),
    "qwen3": ("byte pairs", {"num_key_value_heads": 1, "head_dim": 16}),
    "gte": ("pieces", {"type_vocab_size": 1}),
    "nomic_bert": ("word pieces", {"hidden_dropout_prob": 0.1}),
    "gemma3_text": (
        "pieces",
        {
            **{"num_key_value_heads": 1, "head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 16},
            **{"layer_types": ["sliding_attention", "full_attention"], "use_bidirectional_attention": True},
        },
    ),
    "bart": (
        "byte pairs",
        {
            "d_model": SIZE,
            "init_std": 0.1,
            **{f"{half}_layers": 2 for half in ("encoder", "decoder")},
            **{f"{half}_attention_heads": 2 for half in ("encoder", "decoder")},
            **{f"{half}_ffn_dim": 2 * SIZE for half in ("encoder", "decoder")},
        },
    ),
    "t5": (
        "pieces",
        {
            **{"d_model": SIZE, "d_kv": 16, "d_ff": 2 * SIZE, "num_heads": 2, "num_layers": 2},
            **{"relative_attention_num_buckets": 8, "relative_attention_max_distance": 32},
        },
    ),
}
CAUSAL = ("gpt2", "qwen3")
UNMASKED = (*CAUSAL, "gemma3_text")
"""Language models that predict the next word, be their attention causal or not."""
ENCODER_DECODER = ("bart", "t5")
STATIC = "static"
"""No architecture of transformers: a table of token vectors."""
FOLLOWING = ("distil", "least-squares")
"""Methods that need a teacher."""
FOR_TABLES = ("sent2vec", "least-squares")
"""Methods that train nothing but tables of token vectors."""


def make_config(name, **changes):
    """The configuration of a tiny model, and its tokenizer."""
    from transformers import AutoConfig

    kind, own = ARCHITECTURES[name]
    tokenizer = make_tokenizer(kind, wrap="behind" if name == "t5" else name not in CAUSAL)
    special = {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
        "cls_token_id": tokenizer.cls_token_id,
        "sep_token_id": tokenizer.sep_token_id,
        "mask_token_id": tokenizer.mask_token_id,
    }
    values = {**_COMMON, **special, "vocab_size": len(tokenizer), **own, **changes}
    return AutoConfig.for_model(name, **values), tokenizer


def save_base(directory, name, seed=0, **changes):
    """Write a tiny language model of an architecture, in transformers layout; returns the directory."""
    if name == STATIC:
        from selfsent.models.static import new_table

        new_table(make_tokenizer().backend_tokenizer, SIZE, seed).save(Path(directory))
        return Path(directory)
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

    if name == "gte" and name not in CONFIG_MAPPING:
        pytest.skip("this transformers does not know gte")
    kinds = {**dict.fromkeys(UNMASKED, AutoModelForCausalLM), **dict.fromkeys(ENCODER_DECODER, AutoModelForSeq2SeqLM)}
    config, tokenizer = make_config(name, **changes)
    torch.manual_seed(seed)
    model = kinds.get(name, AutoModelForMaskedLM).from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():  # biases of zero and norms of one would hide what forgets them
            if parameter.ndim == 1:
                parameter += 0.1 * torch.randn_like(parameter)
        if name == "bart":
            model.final_logits_bias.normal_()
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return Path(directory)


def vectors_in_groups(groups, each=10, size=16, seed=0, noise=0.3):
    """Vectors of length 1, (groups · each, size), so many around each of some random directions."""
    draw = np.random.default_rng(seed)
    vectors = draw.normal(size=(groups, size)).repeat(each, axis=0)
    vectors = (vectors + noise * draw.normal(size=vectors.shape)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def encode(tokenizer, sentences):
    """Token ids of each sentence, special tokens included."""
    return tokenizer(list(sentences), truncation=True)["input_ids"]


def pack(token_ids):
    """A packed batch of lists of token ids."""
    from selfsent.data.packed import Packed

    return Packed(
        np.concatenate([np.asarray(ids, dtype=np.int64) for ids in token_ids]),
        np.array([len(ids) for ids in token_ids]),
    )


class Table:
    """A token table in memory: the tokens of sentences by row, without special tokens."""

    def __init__(self, tokenizer, sentences):
        encoded = [tokenizer(sentence, add_special_tokens=False) for sentence in sentences]
        self.parts = [np.array(one["input_ids"]) for one in encoded]
        self.starts = [np.diff(one.word_ids(), prepend=-1) != 0 for one in encoded]

    @property
    def ids(self):
        return np.concatenate(self.parts)

    def lengths(self, rows):
        return np.array([len(self.parts[row]) for row in rows])

    def __getitem__(self, rows):
        from selfsent.data.views.tokens import Tokens

        lengths = self.lengths(rows)
        ids, starts = (np.concatenate([part[row] for row in rows]) for part in (self.parts, self.starts))
        return Tokens(ids, lengths, starts, rows)


def make_batches(learner, views, settings, sentences, labels=None):
    """The batches of a run over sentences, which stand in the first text column; in others there are others.

    Where a view reads what stands beside a sentence, four sentences each are a document.
    """
    from selfsent.data.batches import Batches
    from selfsent.data.views.positives import Documents

    tokenizer = learner.model.tokenizer
    columns = 1 + max(max(view.column, view.second_column or 0) for view in views)
    texts = [sentences, *(make_sentences(len(sentences), seed=100 + column) for column in range(1, columns))]
    tables = [Table(tokenizer, column) for column in texts]
    template = learner.model.template
    beside = any(view.passage is not None for view in views)
    documents = Documents(np.arange(len(sentences)) // 4) if beside else None
    return Batches(tables, np.arange(len(sentences)), views, template, settings, labels=labels, documents=documents)


def peer(directory, **given):
    """A saved model as plain sentence-transformers loads it."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(directory), device="cpu", local_files_only=True, **given)


def save_modules(directory, *modules, **options):
    """Save modules of sentence-transformers as a model; returns the directory."""
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(modules=list(modules), device="cpu", **options).save(str(directory), create_model_card=False)
    return directory


def assert_equal_gradients(found, expected, weights, some_unused=False, **tolerance):
    """The gradients of two losses with respect to the same weights are equal; of those that no loss reads, none."""
    ours, theirs = (torch.autograd.grad(loss, weights, allow_unused=some_unused) for loss in (found, expected))
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            torch.testing.assert_close(mine, other, **tolerance)


def run_example(documented, examples, **known):
    """Run the example in a docstring, which has this many lines, with the names of its module and those given."""
    names = {**vars(sys.modules[documented.__module__]), **known}
    (test,) = doctest.DocTestFinder(recurse=False).find(documented, globs=names)
    assert len(test.examples) in examples
    assert doctest.DocTestRunner().run(test).failed == 0


def cosines(left, right):
    """Cosines of the rows of two tables, without rows of zeros, which must be the same in both."""
    some = np.abs(left).max(1) > 0
    assert np.array_equal(left[~some], right[~some])
    left, right = left[some], right[some]
    return (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)


def change_json(path, **changes):
    """Replace values of a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def flip_bit(path, place=-3):
    """Damage a file: one bit of the byte at a place is another."""
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def write_parquet(path, **columns):
    """Write columns to a parquet file, with the folders above it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def counts(done):
    """A progress object that adds each count of work done to a list."""
    return heard(count=lambda what, count, total: done.append(count))


def heard(**calls):
    """A progress object with these in place of its own methods: `heard(notice=lines.append)`."""
    from selfsent.progress import Progress

    told = Progress()
    for name, call in calls.items():
        setattr(told, name, call)
    return told


def write_table(path, rows):
    """Write rows, dictionaries with the same keys, as CSV, TSV or lines of JSON, by the file's ending; returns it."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0], delimiter="\t" if path.suffix == ".tsv" else ",")
        table.writeheader()
        table.writerows(rows)
    return path


def rows_of(path):
    """The rows of a file of any ending that results have, as dictionaries; in CSV and TSV all values are strings."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


def write_search_set(folder, documents, queries, judged):
    """Write a set of judged queries in BEIR's layout; returns the folder.

    Args:
        folder: which is made.
        documents: texts by id.
        queries: texts by id.
        judged: rows (query, document, grade) by split.
    """
    (folder / "qrels").mkdir(parents=True)
    write_table(folder / "corpus.jsonl", [{"_id": name, "title": "", "text": documents[name]} for name in documents])
    write_table(folder / "queries.jsonl", [{"_id": name, "text": queries[name]} for name in queries])
    for split, rows in judged.items():
        lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in rows)]
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return folder
