"""What methods that compare sentences share: two views of each sentence, and company in the batch."""

from __future__ import annotations

from dataclasses import dataclass

from selfsent.distributed import world_size
from selfsent.encoder import Encoder
from selfsent.errors import SettingsError, TrainingError
from selfsent.settings import check_limits, setting
from selfsent.views import DeleteWords, Noise, PickWords, RepeatWords, View


@dataclass(frozen=True)
class PairOptions:
    """How one sentence gives two views."""

    columns: bool = setting(False, "the views are the first two text columns, instead of one column read twice")
    delete_words: float = setting(
        0.0, "share of the words deleted from each view, beside dropout", minimum=0.0, maximum=0.95
    )
    pick_words: int = setting(0, "largest number of words that stay in a view, beside dropout; 0 keeps all", minimum=0)
    repeat_words: float = setting(
        0.0, "largest share of the words said twice in one view (ESimCSE: 0.32)", minimum=0.0, maximum=1.0
    )

    def __post_init__(self) -> None:
        check_limits(self)
        if sum(map(bool, (self.delete_words, self.pick_words, self.repeat_words))) > 1:
            raise SettingsError(
                "--delete-words, --pick-words and --repeat-words are kinds of noise for the same views: give one"
            )


def pair_of_views(options: PairOptions) -> tuple[View, View]:
    """The two views; words are repeated in the second one only, so that the lengths differ (Wu et al. 2021)."""
    both: Noise | None = DeleteWords(options.delete_words) if options.delete_words else None
    both = PickWords(options.pick_words) if options.pick_words else both
    second = RepeatWords(options.repeat_words) if options.repeat_words else both
    return View(noise=both), View(1 if options.columns else 0, second)


def require_difference(model: Encoder, options: PairOptions) -> None:
    """Refuse two views that are the same.

    Raises:
        SettingsError: nothing makes the views differ.
    """
    noise = options.columns or options.delete_words or options.pick_words or options.repeat_words
    if not (model.dropout_rate or noise):
        raise SettingsError(
            "the two views of a sentence would be identical: this base has dropout 0 and no noise is set;"
            " give --dropout 0.1, --delete-words 0.3 or --repeat-words 0.32"
        )


def whole_batch(sentences: int) -> int:
    """Sentences in the batch over all processes, given those of this one.

    Raises:
        TrainingError: there is nothing to compare with.
    """
    total = sentences * world_size()
    if total < 2:
        raise TrainingError("a batch of one sentence has nothing to compare it with: raise --batch-size to 2 or more")
    return total
