"""Plan of a run: method, options and settings, resolved from arguments and defaults."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import MISSING
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.data.corpus.table import rows_digest
from selfsent.data.views.view import View
from selfsent.errors import SettingsError, guess
from selfsent.methods import METHODS, Method, whose_option
from selfsent.methods.method import STATIC_STEPS, MethodOptions
from selfsent.methods.positives import NOISES
from selfsent.methods.postprocessing import whitened
from selfsent.models.base_info import BaseInfo
from selfsent.models.bases import resolve, weights_digest
from selfsent.models.heads.options import CNN_POOL, HEADS, POOLINGS, Pooling, name_of
from selfsent.models.loading import check_table
from selfsent.models.lora import require_peft
from selfsent.models.prompts import Prompts
from selfsent.settings import DURATIONS, WITHOUT_STEPS, Settings, split_arguments, with_current_names
from selfsent.training.checks import KnownLabels, facts_of, labels_of
from selfsent.training.defaults import (
    LONGEST_DOCUMENT,
    default_base,
    default_method,
    default_settings,
)
from selfsent.training.run_config import ModelOptions


@dataclasses.dataclass(frozen=True)
class Plan:
    """Everything that decides the result of a run, resolved.

    Args:
        method: the learning method.
        options: the method's own options.
        settings: of the training.
        base_info: the base encoder.
        pooling: name of the pooling; None for the base's, or with a CNN.
        dropout: dropout rate of the encoder; None for its configuration's.
        whiten: strength of the whitening of the trained encoder at the end; 0 for none.
        ignored: settings the user gave that mean nothing to this method.
        longest: maximum number of steps where the user gave none; None for no limit.
        head: options of the head that the encoder is given; None to leave it as it is.
        sizes: of vectors that are trained for besides the whole, in descending order.
        lora: rank of the adapters that are trained in place of the transformer; None to train that.
        keep_adapter: whether they are saved by themselves.
        prompts: before queries, documents, and texts of one kind.
    """

    method: Method
    options: MethodOptions
    settings: Settings
    base_info: BaseInfo
    pooling: Pooling | None
    dropout: float | None
    whiten: float = 0.0
    ignored: tuple[str, ...] = ()
    longest: int | None = None
    head: Any = None
    sizes: tuple[int, ...] = ()
    lora: int | None = None
    keep_adapter: bool = False
    prompts: Prompts = Prompts()  # noqa: RUF009 — it is frozen

    @classmethod
    def resolve(cls, method: Method, base: BaseInfo | str | Path | None = None, **changes: Any) -> Plan:
        """Resolve settings and options of a run: the method's defaults or a preset's, then the user's changes.

        Args:
            method: the learning method.
            base: the base encoder; None for the best one that ships and that the method can train.
            **changes: fields of `ModelOptions`, of `Settings`, of the method's options and of the head's.

        Raises:
            SettingsError: an unknown name, or a value out of range.
            BaseEncoderError: there is no such base.
        """
        if isinstance(changes.get("whiten"), bool):
            changes["whiten"] = float(changes["whiten"])
        model, changes = split_arguments(ModelOptions, changes)
        preset, head, pooling, whiten = model.preset, model.head, model.pooling, model.whiten
        changes = with_current_names(changes, method.options)
        chosen = method.preset(preset)
        if base is None:
            base = default_base(method, {**chosen, **changes}, model)
        info = base if isinstance(base, BaseInfo) else BaseInfo.read(base)
        # With a head or another pooling, vectors differ from the ones that the base was trained to make.
        same = head is None and pooling in (None, info.pooling)
        knows = same and info.is_sentence_encoder
        given = chosen if preset else method.for_encoders if knows else {}
        if changes.keys() & set(DURATIONS):
            given = {name: value for name, value in given.items() if name not in DURATIONS}
        changes = {**given, **changes}
        # The default is one pass, but on a huge corpus never more steps than the paper took.
        limited = preset is not None or changes.keys() & set(DURATIONS)
        longest = None if limited else STATIC_STEPS if info.is_static else method.published.steps
        chosen_head = _head(method, model, changes)
        _check_lora(method, model, info)
        start = default_settings(method, info, bool(model.lora))  # raises where the method cannot train the base
        settings, options, ignored = _changed(method, method.published if preset else start, changes)
        if info.is_static:
            layers = getattr(options, "layers", "last")
            check_table(info.name, pooling=pooling, dropout=model.dropout, head=head, layers=layers)
        options.check_base(info, model.dropout)
        if options.reads_whole_documents and not preset and "max_length" not in changes:
            settings = settings.replace(max_length=LONGEST_DOCUMENT)
        if whiten is None:
            turned = knows and info.is_bare_table and not (preset or model.sizes)
            whiten = method.static_whiten if turned else 0.0
        views = options.views()
        joins = any(view.second_column is not None for view in views)
        _check(method, settings, options, whiten, model.sizes, joins)
        if pooling is None and head != CNN_POOL:
            own = info.pooling or method.pooling
            pooling = own if own in POOLINGS else None
        return cls(
            method=method,
            options=options,
            settings=settings,
            base_info=info,
            pooling=pooling,
            dropout=model.dropout,
            whiten=float(whiten),
            ignored=ignored,
            longest=longest,
            head=chosen_head,
            sizes=model.sizes,
            lora=model.lora,
            keep_adapter=model.keep_adapter,
            prompts=Prompts.of(info.directory, model.query_prompt, model.document_prompt, model.prompts and not joins),
        )

    @property
    def base(self) -> str:
        """Name of the base encoder, as given."""
        return self.base_info.name

    def summary(self) -> str:
        """The plan in one line."""
        how = "a fit, without steps" if self.method.closed_form else self.settings.summary()
        pooled = f"pooling {self.pooling}, " if self.pooling else ""
        adapted = f", LoRA of rank {self.lora}" if self.lora else ""
        of_sizes = f", for sizes {','.join(map(str, self.sizes))}, too" if self.sizes else ""
        return f"{self.method.name} from {self.base}: {pooled}{how}{adapted}{whitened(self.whiten)}{of_sizes}"

    @property
    def encoders(self) -> list[Path]:
        """Directories of the encoders that are read: the base, and teachers."""
        return [self.base_info.directory, *(resolve(name) for name in self.options.teachers)]

    @property
    def other_pooling(self) -> str | None:
        """The pooling that the untrained base is scored with, where the run trains another."""
        own = self.base_info.pooling or "mean"
        return own if self.pooling and self.pooling != own else None

    @property
    def for_encoders(self) -> str:
        """Options with other defaults because the base is a sentence encoder already, such as `keep_base=1`."""
        knows = self.base_info.is_sentence_encoder
        chosen = [(name, value) for name, value in self.method.for_encoders.items() if knows]
        return " ".join(f"{name}={value:g}" for name, value in chosen if getattr(self.options, name) == value)

    @cached_property
    def views(self) -> tuple[View, ...]:
        """Inputs of the learner."""
        return self.options.views()

    @property
    def columns(self) -> int:
        """Number of text columns the learner reads."""
        return 1 + max(max(view.column, view.second_column or 0) for view in self.views)

    @property
    def joins(self) -> bool:
        """Whether two texts are one input, so that the model gives scores of pairs instead of vectors."""
        return any(view.second_column is not None for view in self.views)

    @property
    def contrasts_pairs(self) -> bool:
        """Whether it learns from texts of a row that belong together, without labels: search can score that."""
        return self.columns > 1 and not self.joins and self.options.labels() is None

    @property
    def reads_documents(self) -> bool:
        """Whether a view reads the neighbours of a sentence in its document."""
        return any(view.passage is not None for view in self.views)

    @property
    def defaults(self) -> dict[str, dict[str, Any]]:
        """Defaults of options and settings, by section: the behaviour of older versions, which lack them."""
        sections = {"options": self.method.options, "settings": Settings}
        return {
            section: {item.name: item.default for item in dataclasses.fields(kind) if item.default is not MISSING}
            for section, kind in sections.items()
        }

    def on(self, corpus: Corpus) -> Plan:
        """The plan with the options that follow from the corpus.

        Raises:
            SettingsError: the corpus has too few text columns, or lacks documents that a view reads.
        """
        plan = dataclasses.replace(self, options=self.options.fitted(**facts_of(corpus)))
        if plan.columns > len(corpus.input_columns):
            problem = f"{plan.method.name} needs {plan.columns} text columns; the corpus has {len(corpus.text_columns)}"
            advice = "name them with text_columns"
            raise SettingsError(f"{problem}: {advice}")
        if plan.reads_documents and corpus.documents is None:
            raise SettingsError(
                f"{self.method.name} reads the neighbours of a sentence in its document, and the corpus has no"
                " documents: give document_column, or split_sentences=True if a text holds several sentences"
            )
        return plan

    def known(self, corpus: Corpus, rows: np.ndarray) -> KnownLabels | None:
        """The labels of the corpus, if the method needs them.

        Raises:
            SettingsError: they do not suit the method.
        """
        wanted = self.options.labels()
        return None if wanted is None else labels_of(wanted, self.method.name, corpus, rows)


def config_of(plan: Plan, corpus: Corpus, rows: np.ndarray) -> dict[str, Any]:
    """A plan and its data as JSON, for `run.json`: a run must share it with the run that it resumes."""
    digests = ",".join(weights_digest(resolve(teacher)) for teacher in plan.options.teachers)
    return {
        "method": plan.method.name,
        "options": dataclasses.asdict(plan.options),
        **({"teacher_digest": digests} if digests else {}),
        "settings": dataclasses.asdict(plan.settings),
        "base": plan.base,
        "base_digest": plan.base_info.digest,
        "pooling": plan.pooling or CNN_POOL,
        **({"head": {"name": name_of(plan.head), **dataclasses.asdict(plan.head)}} if plan.head else {}),
        "dropout": plan.dropout,
        "whiten": plan.whiten,
        **({"sizes": list(plan.sizes)} if plan.sizes else {}),
        **({"lora": plan.lora, "keep_adapter": plan.keep_adapter} if plan.lora else {}),
        **({"prompts": dataclasses.asdict(plan.prompts)} if plan.prompts else {}),
        "corpus": {
            "source": corpus.source,
            "fingerprint": corpus.fingerprint,
            "sentences": len(rows),
            "rows": rows_digest(rows),
        },
    }


def default_plan(corpus: Corpus, base: BaseInfo | str | Path | None, **given: Any) -> tuple[Plan, str]:
    """The plan of the default method for a corpus, and the reason in a few words.

    Args:
        corpus: the corpus.
        base: the base encoder; None for the method's default among those that ship.
        **given: arguments of `Plan.resolve`; None counts as not given.

    Raises:
        SettingsError: as `default_method` and `Plan.resolve` do.
    """
    if base is not None and not isinstance(base, BaseInfo):
        base = BaseInfo.read(base)
    method, settings, reason = default_method(corpus, base)
    given = {name: value for name, value in given.items() if value is not None}
    replaced = {*(NOISES if given.keys() & set(NOISES) else ()), *(("pooling",) if "head" in given else ())}
    own = {} if "preset" in given else {name: value for name, value in settings.items() if name not in replaced}
    try:
        return Plan.resolve(method, base, **{**own, **given}), reason
    except SettingsError as error:
        raise SettingsError(f"without `method`, {method.name} is trained here, as {reason}: {error}") from None


def _changed(method: Method, start: Settings, changes: Mapping[str, Any]) -> tuple[Settings, Any, tuple[str, ...]]:
    """Settings and options with the changes, and the names of the ones that a method without steps ignores.

    Raises:
        SettingsError: an unknown name, or a value out of range.
    """
    general = {item.name for item in dataclasses.fields(Settings)}
    own = {item.name for item in dataclasses.fields(method.options)}
    if unknown := [name for name in changes if name not in general | own]:
        hint = whose_option(unknown[0]) or guess(unknown[0], sorted(general | own))
        raise SettingsError(f"{method.name} has no option {unknown[0]!r}; {hint}")
    ignored = tuple(sorted(changes.keys() & general - {*WITHOUT_STEPS})) if method.closed_form else ()
    settings = start.replace(**{name: changes[name] for name in changes if name in general and name not in ignored})
    if not (settings.steps or settings.epochs or settings.budget):
        settings = settings.replace(epochs=1.0)
    return settings, method.options(**{name: changes[name] for name in changes if name in own}), ignored


def _check(
    method: Method, settings: Settings, options: Any, whiten: float, sizes: tuple[int, ...], joins: bool
) -> None:
    """Reject conflicting settings.

    Raises:
        SettingsError: two of them conflict.
    """
    if whiten and method.name == "whitening":
        raise SettingsError("whitening is whitened already: leave out `whiten`, or give `strength`")
    if whiten and joins:
        raise SettingsError(f"{method.name} makes scores, not vectors that could be whitened: leave out `whiten`")
    if whiten and getattr(options, "space", None) == "teacher":
        raise SettingsError("whitening leaves the space of the teacher: leave out `whiten` or space=teacher")
    if sizes and not method.learner.nests:
        able = ", ".join(name for name, other in METHODS.items() if other.learner.nests)
        raise SettingsError(f"`matryoshka` is for methods whose loss compares vectors: {able}")
    if sizes and whiten:
        raise SettingsError("whitening turns vectors, so that sizes are lost: leave out `matryoshka` or `whiten`")
    check_batch_size(method, options, settings.batch_size)
    if options.is_batchwise and settings.accumulate > 1:
        problem = f"{method.name} compares the sentences of a batch, and `accumulate` cuts it"
        advice = "give mini_batch_size instead, or lower batch_size"
        raise SettingsError(f"{problem}: {advice}")
    if settings.mini_batch_size and not options.is_batchwise:
        raise SettingsError(f"{method.name} does not compare the sentences of a batch: give accumulate instead")
    if settings.mini_batch_size and method.name == "infomax":
        raise SettingsError("infomax compares all tokens of a batch, not vectors alone: lower batch_size instead")


def _check_lora(method: Method, model: ModelOptions, base: BaseInfo) -> None:
    """Reject adapters where there is nothing to adapt.

    Raises:
        SettingsError: there is not, or peft is not installed.
    """
    if not model.lora:
        if model.keep_adapter:
            raise SettingsError("keep_adapter is for training with lora: give its rank, such as lora=16")
        return
    if method.closed_form:
        raise SettingsError(f"{method.name} trains no transformer: leave out lora")
    if base.is_static:
        raise SettingsError("lora is for transformers, such as bundled-encoder: leave it out, or give another `base`")
    require_peft()


def check_batch_size(method: Method, options: Any, size: int) -> None:
    """Reject a batch too small for a method.

    Raises:
        SettingsError: the method compares the sentences of a batch, and it has one.
    """
    if options.is_batchwise and size < 2:
        raise SettingsError(f"{method.name} compares the sentences of a batch: batch_size must be at least 2")


def _head(method: Method, model: ModelOptions, changes: dict[str, Any]) -> Any:
    """The options of a head, taken out of the changes.

    Raises:
        SettingsError: it conflicts with the method or the pooling.
    """
    head = model.head
    if head is None:
        return None
    if method.head:
        raise SettingsError(f"{method.name} has a head of its own, {method.head}: leave out `head`")
    if method.name == "cross-encoder":
        raise SettingsError("cross-encoder puts a dense layer of its own after the pooling: leave out `head`")
    if head == CNN_POOL and model.pooling:
        raise SettingsError(f"{CNN_POOL} is a pooling itself: leave out `pooling`")
    names = changes.keys() & {item.name for item in dataclasses.fields(HEADS[head])}
    return HEADS[head](**{name: changes.pop(name) for name in names})
