"""The published data sets: one declaration each, by the suite that scores them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from selfsent.evaluation.datasets import publishers
from selfsent.evaluation.datasets.declared import PAIR, DataSet
from selfsent.evaluation.datasets.publishers import Columns

Protocol = Literal["nested", "folds", "split"]
_SUBSETS, _TOPICS = {**PAIR, "subset": "subset"}, {**PAIR, "subset": "topic"}


def _year(year: int, rows: int, known: str = "") -> DataSet:
    name = f"sts{year}"
    return DataSet(name, f"mteb/{name}-sts", rows, columns=_SUBSETS, optional=("subset",), known=known)


# SemEval's shared tasks (Agirre et al., 2012 to 2016), STSb (Cer et al., 2017; CC BY-SA 4.0) and SICK-R (Marelli et
# al., 2014; CC BY-NC-SA 3.0): `sickr` is the mteb benchmark's 9,927 pairs; papers use the 4,927 test pairs.
_SICK = ("SentEval/SICK/SICK_test_annotated.txt",)
STS = (
    _year(12, 3108, "4a507d"),
    _year(13, 1500, "cf3674"),
    _year(14, 3750, "7180f8"),
    _year(15, 3000, "53992e"),
    _year(16, 1186),
    DataSet("stsb", "mteb/stsbenchmark-sts", 1379, known="cab16b"),
    DataSet("sickr", "mteb/sickr-sts", 9927),
    DataSet("sickr-test", "SentEval/SICK", 4927, hub=False, reader=publishers.read_sick, files=_SICK),
)
STSB_DEV = DataSet("stsb-dev", "mteb/stsbenchmark-sts", 1500, "validation", known="5c9adf")

# Cer et al., 2017; en-de, fr-en, it-en and nl-en: Reimers and Gurevych, 2020. CC BY-SA 4.0.
_STS17 = {"en-en": "f657a2", "es-es": "176e69", "ar-ar": "02568d", "ko-ko": "", "en-ar": "17d58c", "en-de": ""}
_STS17 |= {"en-tr": "20cc3a", "es-en": "56036b", "fr-en": "", "it-en": "", "nl-en": ""}
STS17 = tuple(
    DataSet(f"sts17-{pair}", "mteb/sts17-crosslingual-sts", 250 if pair != "ko-ko" else 2846, "test", pair, known=known)
    for pair, known in _STS17.items()
)


def _translated(language: str, split: str) -> DataSet:
    """STSb as translated by DeepL (May, 2021)."""
    rows, columns = {"test": 1379, "dev": 1500}[split], {**PAIR, "score": "similarity_score"}
    return DataSet(f"stsb-multi-{language}-{split}", "PhilipMay/stsb_multi_mt", rows, split, language, columns)


STSB_CROSS = {
    f"stsb-en-{language}{suffix}": (_translated("en", split), _translated(language, split))
    for split, suffix in (("test", ""), ("dev", "-dev"))
    for language in ("de", "es", "fr")
}
"""English and translated pairs; `dev` for choosing settings."""

# Artetxe and Schwenk, 2019. arXiv:1812.10464; CC BY 2.0 FR.
TATOEBA = tuple(
    DataSet(
        *(f"tatoeba-{language}", "parallel", 1000, "tatoeba_test", f"en-{language}"),
        columns={"english": "en", "other": language},
        hub=False,
        reader=publishers.read_laser,
        files=tuple(f"tatoeba/v1/tatoeba.{iso}-eng.{side}" for side in ("eng", iso)),
    )
    for language, iso in {"ar": "ara", "de": "deu", "es": "spa", "fr": "fra", "tr": "tur"}.items()
)

# Misra, Ecker and Walker, 2016; Reimers et al., 2019.
_FOLDER = "argument-similarity"
_AFS = tuple(f"{_FOLDER}/afs/ArgPairs_{topic}.csv" for topic in ("DP", "GC", "GM"))
ARGUMENTS = (
    DataSet("afs", f"{_FOLDER}/afs", None, "all", None, _TOPICS, (), False, publishers.read_afs, _AFS),
    DataSet("ukp-aspect", f"{_FOLDER}/ukp_aspect", 3595, "all", columns=_TOPICS, hub=False, known="0dcb97"),
)


def _senteval(name: str, *columns: str, **splits: tuple[int, str]) -> tuple[DataSet, ...]:
    same = {column: column for column in ("text", "label", *columns)}
    names = {split: name.lower() if split == "all" else f"{name.lower()}-{split}" for split in splits}
    return tuple(
        DataSet(names[split], f"SentEval/{name}", rows, split, columns=same, hub=False, known=known)
        for split, (rows, known) in splits.items()
    )


def _trec(split: str, rows: int, file: str) -> DataSet:
    same, paths = {"text": "text", "label": "label"}, (f"SentEval/TREC/{file}",)
    return DataSet(f"trec-{split}", "SentEval/TREC", rows, split, None, same, (), False, publishers.read_trec, paths)


# SentEval (Conneau and Kiela, 2018. arXiv:1803.05449).
_SST2 = _senteval("SST2", train=(67349, "699300"), validation=(872, "b51e20"), test=(1821, "26b013"))
TRANSFER: dict[str, tuple[Protocol, tuple[DataSet, ...]]] = {
    "mr": ("nested", _senteval("MR", all=(10662, "e68636"))),
    "cr": ("nested", _senteval("CR", all=(3775, "e90b3d"))),
    "subj": ("nested", _senteval("SUBJ", all=(10000, "6e41b7"))),
    "mpqa": ("nested", _senteval("MPQA", all=(10606, "9d3df0"))),
    "sst2": ("split", _SST2),
    "trec": ("folds", (_trec("train", 5452, "train_5500.label"), _trec("test", 500, "TREC_10.label"))),
    "mrpc": ("folds", _senteval("MRPC", "text2", train=(4076, "867068"), test=(1725, "0300a8"))),
}
"""Protocol and data sets of each task, in the order train, validation, test."""


def _useb(
    name: str, rows: int | None, columns: str, reader: Callable[..., Columns], *files: str, known: str = ""
) -> DataSet:
    same, config = {column: column for column in columns.split()}, f"data-eval/{name}"
    paths = tuple(f"kwang2049/useb/{config}/{file}" for file in files)
    return DataSet(name, "kwang2049/useb", rows, "test", config, same, (), False, reader, paths, known)


# Wang, Reimers and Gurevych, 2021. arXiv:2104.06979; files as github.com/UKPLab/useb's README lists them. PIT-2015 is
# CC BY-NC-SA 3.0.
_CANDIDATES, _VOTES = "query sentence1 sentence2 relevant", "sentence1 sentence2 score subset"
_FORUMS, _TWEETS = ("corpus.json", "retrieval_split.json"), ("Twitter_URL_Corpus_test.txt", "test.data")
ASKUBUNTU = _useb("askubuntu", 3720, _CANDIDATES, publishers.read_askubuntu, "text_tokenized.txt", "test.txt")
CQADUPSTACK = _useb("cqadupstack", None, "forum id text relevant", publishers.read_cqadupstack, *_FORUMS)
SCIDOCS = _useb("scidocs", None, f"subset id {_CANDIDATES}", publishers.read_scidocs, "data.json")
TWITTERPARA = _useb("twitterpara", 11092, _VOTES, publishers.read_twitterpara, *_TWEETS, known="1d1f5b")
