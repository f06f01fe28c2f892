"""Advice before a run: each function gives one message, or None where its condition does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from selfsent.data.corpus import Corpus
from selfsent.training.defaults import FOR_SINGLE_FROM_ENCODER, is_strong
from selfsent.training.plan import Plan


@dataclass(frozen=True)
class Situation:
    """Facts about a run that is about to begin.

    Args:
        plan: the resolved plan.
        corpus: the text.
        held_out: sizes of the parts kept apart, in words; empty if they were given or nothing is held out.
        is_scored: whether base and trained model are scored on text kept apart.
        dev_test_set: name of the test set that the model is chosen by; empty without one.
        trained_with_labels: supervised methods that trained the base before.
    """

    plan: Plan
    corpus: Corpus
    held_out: str = ""
    is_scored: bool = False
    dev_test_set: str = ""
    trained_with_labels: tuple[str, ...] = ()


Advice = Callable[[Situation], str | None]


def unread_columns(about: Situation) -> str | None:
    """Text columns that the method does not read."""
    columns, count = about.corpus.input_columns, about.plan.columns
    if count >= len(columns):
        return None
    return f"{about.plan.method.name} reads {', '.join(columns[:count])} and not {', '.join(columns[count:])}"


def summary(about: Situation) -> str:
    """The plan in one line."""
    return about.plan.summary()


def prompts(about: Situation) -> str | None:
    """The prompts put before texts."""
    found = about.plan.prompts
    return f"prompts: {found.summary} (prompts=False leaves them out)" if found else None


def strong_base(about: Situation) -> str | None:
    """Little gain over a strong sentence encoder."""
    if not (about.plan.reads_documents and is_strong(about.plan.base_info)):
        return None
    fact = "the base is a strong sentence encoder: rank with words, as search does"
    advice = "training adds little here, so look at the scores before you use the result"
    return f"{fact}; {advice}"


def single_sentences(about: Situation) -> str | None:
    """Little gain from single sentences over a sentence encoder, with the default method."""
    plan = about.plan
    if plan.method.name != FOR_SINGLE_FROM_ENCODER[0] or not plan.base_info.is_trained_transformer:
        return None
    fact = "the base is a sentence encoder already, and single sentences change one by about a point"
    return f"{fact}: look at the scores before you use the result"


def options_for_encoders(about: Situation) -> str | None:
    """Options with other defaults because the base is a sentence encoder."""
    if not (flags := about.plan.for_encoders):
        return None
    return f"the base is a sentence encoder already, so training keeps what it knows: {flags}"


def other_pooling(about: Situation) -> str | None:
    """A difference of scores that comes from the pooling."""
    own = about.plan.other_pooling if about.is_scored else None
    if own is None:
        return None
    fact = f"the untrained base pools by {own}, and is scored so"
    share = f"a part of the difference comes from the pooling (pooling={own} trains with it, too)"
    return f"{fact}: {share}"


def joined_columns(about: Situation) -> str | None:
    """A search test on columns that training read as one document."""
    together = about.corpus.report.together
    if not (about.plan.reads_documents and together):
        return None
    first, *_, last = together
    return (
        f"{' and '.join(together)} become one document, so training reads each {first} beside its own {last}: a"
        f" search test that asks for this {last} would be a test on training data. For such a test train on one"
        f" column (text_column={last}), or on pairs kept apart (text_columns={first},{last})"
    )


def natural_pairs(about: Situation) -> str | None:
    """Columns that could be learned as pairs."""
    if not (natural := about.corpus.report.natural):
        return None
    first, second = natural
    fact = f"the table has {first} beside {second}, so that a {first} could learn to find its {second}"
    return f"{fact}: give text_columns={first},{second}"


def chosen_by_test_set(about: Situation) -> str | None:
    """A test set used for choosing the model."""
    name = about.dev_test_set
    return f"{name} is a test set: it cannot test a model that was chosen by it" if name else None


def kept_apart(about: Situation) -> str | None:
    """Sizes of training and test parts."""
    return about.held_out or None


def tsdae_after_labels(about: Situation) -> str | None:
    """Loss of quality by TSDAE after supervised training."""
    if about.plan.method.name != "tsdae" or not about.trained_with_labels:
        return None
    worse = "tsdae after labels made models worse (sentence-transformers issues 962 and 1131)"
    advice = "train tsdae first and with labels afterwards"
    return f"this base was trained by {about.trained_with_labels[0]} before: {worse}; {advice}"


def ignored_settings(about: Situation) -> str | None:
    """Settings without meaning for a method without steps."""
    if not (names := about.plan.ignored):
        return None
    ignored = ", ".join(f"`{name}`" for name in names)
    return f"{about.plan.method.name} takes no steps: {ignored} {'is' if len(names) == 1 else 'are'} ignored"


ADVICE: tuple[Advice, ...] = (
    unread_columns,
    summary,
    prompts,
    strong_base,
    options_for_encoders,
    other_pooling,
    joined_columns,
    natural_pairs,
    chosen_by_test_set,
    kept_apart,
    tsdae_after_labels,
    ignored_settings,
)
"""Advice before every run, in the order in which it is shown."""


def advice_on(about: Situation) -> Iterator[str]:
    """The messages whose condition holds, in order."""
    yield from filter(None, (each(about) for each in ADVICE))
