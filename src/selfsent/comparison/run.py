"""Which method makes the best encoder of a text: each from the same base, on the same sentences, in the same time.

Nothing here needs labels. The encoders are judged on documents that none of them was trained on, the best one is
chosen, and what it is worth is measured on documents that neither training nor choice has seen.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from selfsent import api
from selfsent.comparison.page import comparison_page
from selfsent.comparison.result import UNTRAINED, Selection
from selfsent.data.corpus import Corpus, read_corpus
from selfsent.distributed import join, rank, wait
from selfsent.errors import BaseEncoderError, RunError, SettingsError, TrainingError
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.results import Score
from selfsent.files import read_json, write_json, write_text
from selfsent.methods import METHODS, RELATIVES, SUPERVISED, get_method
from selfsent.models.bases import resolve
from selfsent.models.encoder import Encoder
from selfsent.models.heads.loading import is_static
from selfsent.models.loading import load_encoder
from selfsent.progress import Progress, shown
from selfsent.report.scoring import Dev, check_dev, dev_task
from selfsent.settings import DURATIONS
from selfsent.training.identity import weights_digest
from selfsent.training.plan import Plan, make_plan
from selfsent.training.run_config import Notice
from selfsent.training.run_directory import RunDirectory, first_difference, take_over, versions

BUDGET = 120.0
"""Seconds that each method trains, unless told otherwise."""
CANDIDATES = tuple(name for name in METHODS if name not in (*SUPERVISED, *RELATIVES))
RESULT, PAGE = "comparison.json", "report.html"
_TOLD = ("batch_size", "learning_rate", "max_length", "seed")


def compare(
    corpus: Corpus | str | Path | Iterable[str] | Callable[[], Corpus],
    methods: str | Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None,
    base: str | Path = "bundled",
    output: str | Path = "comparison",
    *,
    dev: Dev = "context",
    sentences: int | None = None,
    seeds: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    data: str | Path | None = None,
    progress: Progress | None = None,
    quiet: bool = False,
    **common: Any,
) -> Selection:
    """Train with several methods, choose the best encoder without labels, and score it on documents kept apart.

    Args:
        corpus: sentences with documents, as `selfsent.train` takes them.
        methods: names of methods, or by a name of one's own the method with its `preset`, `pooling`, `head`, `dropout`,
            `whiten`, settings and options: `{"simcse": {}, "slower": {"method": "simcse", "learning_rate": 1e-4}}`.
            None for all that need no labels (of neighbours and its relatives the first alone), or, going on, for those
            that are there.
        base: the encoder that all start from. Methods that cannot train it are left out where none is named.
        output: the directory: an ordinary run in `methods/NAME/` for each, those with other seeds in its `seeds/SEED/`,
            the chosen `model/`, and `comparison.json`.
        dev: what to choose by: `context` (label-free, on documents kept apart for it) or a task such as `stsb-dev`.
        sentences: train on no more rows than this, drawn at random, the same for all.
        seeds: runs of each method, from its seed upwards; one without it. A method's score is the mean of its runs, and
            intervals and p-values hold over documents and seeds; of the chosen method the best run is the model.
        resume: go on in `output`, with the methods and seeds that are there and others; what is done is not trained
            again.
        overwrite: throw away what is in `output`.
        data: a mirror of the evaluation data sets; without it SELFSENT_DATA.
        progress: hears all runs; by default they are shown.
        quiet: nothing is shown.
        **common: of all methods: fields of `Settings`, `pooling` and `dropout`. `steps`, `epochs` or `budget` say how
            long each trains; two minutes without them.

    Raises:
        SelfsentError: what is wrong with corpus, base, methods or directory, before anything runs; or all failed.
    """
    with shown(progress, quiet) as told:
        return _compare(corpus, methods, base, output, dev, sentences, seeds, resume, overwrite, data, told, common)


def _compare(
    corpus: Corpus | str | Path | Iterable[str] | Callable[[], Corpus],
    methods: str | Sequence[str] | Mapping[str, Mapping[str, Any]] | None,
    base: str | Path,
    output: str | Path,
    dev: Dev,
    sentences: int | None,
    seeds: int | None,
    resume: bool,
    overwrite: bool,
    data: str | Path | None,
    progress: Progress,
    common: Mapping[str, Any],
) -> Selection:
    join()
    notice = progress.notice
    check_dev(dev)
    if seeds is not None and seeds < 1:
        raise SettingsError(f"--seeds is {seeds}; it must be at least 1")
    directory = RunDirectory(Path(output))
    directory.check(resume, overwrite, [resolve(base)])
    # Methods and seeds of an earlier run of this comparison stay in it.
    before = directory.record.get("methods", {})
    usual = methods is None and not before
    if methods is None:
        methods = {} if before else _candidates(base, notice)
    given = _arguments(methods, common)
    asked = {**before, **given}
    seeds = max(seeds or 1, directory.record.get("seeds", 1))
    if not asked:
        raise SettingsError("there is no method to compare")
    plans = {name: _plan(name, base, given) for name, given in asked.items()}
    turns = _turns(asked, plans, directory.path, seeds)
    if not isinstance(corpus, Corpus):
        corpus = corpus() if callable(corpus) else read_corpus(corpus, split_sentences=None)
    if usual and corpus.documents is None:  # what needs documents was not asked for by name
        plans = {name: plan for name, plan in plans.items() if not plan.reads_documents}
        notice(f"left out without documents: {', '.join(asked.keys() - plans.keys())}")
        given, asked = ({name: part[name] for name in plans} for part in (given, asked))
        turns = [turn for turn in turns if turn.name in plans]
    hold_out = HoldOut.of(corpus, dev == "context", notice).thinned(sentences)
    for plan in plans.values():
        plan.on(corpus).known(corpus, hold_out.train)
    if hold_out.test is not None:
        notice(hold_out.summary(corpus))
    if dev != "context" and not dev.endswith("-dev"):
        notice(f"{dev} is a test set: for a model chosen by it, its score is none")
    if dev == "context" and (aiming := [name for name, plan in plans.items() if plan.reads_documents]):
        notice(
            f"{', '.join(aiming)}: trained to find what stands beside a sentence, which is what context asks;"
            " see whether --dev stsb-dev, or a task of your own, says the same"
        )
    judge = dev_task(dev, corpus, hold_out, data)
    source = {"source": corpus.source, "fingerprint": corpus.fingerprint, "sentences": len(hold_out.train)}
    start = {"base": str(base), "base_digest": weights_digest(resolve(base))}
    directory.match({"dev": dev, **start, "settings": common, "corpus": source})
    _check_known(before, given, turns)
    untrained = judge(load_encoder(base))
    directory.begin(steps=False)
    directory.update(status="running", methods=asked, seeds=seeds)
    notice(f"untrained: {untrained.score:.2f} on {'the development documents' if dev == 'context' else dev}")
    ahead = [turn for turn in turns if not (directory.resumed and (turn.place / "model").is_dir())]
    if minutes := sum(turn.given.get("budget") or 0 for turn in ahead) / 60:
        notice(f"{len(ahead)} runs to go: {minutes:,.1f} minutes of training")
    train = partial(api.train, corpus, base=base, hold_out=hold_out, data=data)
    found = Selection(directory.path, dev, untrained, (), seeds=seeds)
    found = _in_turn(found, turns, directory.resumed, train, judge, progress)
    about = {"corpus": f"{corpus.source}: {corpus.report.summary('; ')}"}
    if hold_out.test is not None:
        about["documents"] = hold_out.summary(corpus)
    _finish(found, directory, {**about, "base": str(base)})
    return found


def _candidates(base: str | Path, notice: Notice) -> list[str]:
    """The methods that are compared where none is named: those that need no labels, and can train the base."""
    if not is_static(resolve(base)):
        return list(CANDIDATES)
    found = [name for name in CANDIDATES if (method := METHODS[name]).static and method.suits_static(method.options())]
    left = [name for name in CANDIDATES if name not in found]
    notice(f"{base} is a table of token vectors; left out, since they need a transformer: {', '.join(left)}")
    return found


def _check_known(
    before: Mapping[str, Mapping[str, Any]], given: Mapping[str, Mapping[str, Any]], turns: Sequence[_Turn]
) -> None:
    """Refuse other settings for methods that are there, but for one whose run went wrong.

    Raises:
        RunError: naming the first difference.
    """
    asked = json.loads(json.dumps(given))  # as the old ones were written
    for turn in turns:
        both = turn.name in asked and turn.name in before
        difference = first_difference(before[turn.name], asked[turn.name]) if both else None
        record = turn.place / "run.json"
        if difference and record.is_file() and not read_json(record).get("stopped"):
            raise RunError(
                f"the comparison cannot be resumed: {turn.name}: {difference}; use the old value, or another name"
            )


def _in_turn(
    found: Selection,
    turns: Sequence[_Turn],
    resumed: bool,
    train: Callable[..., api.Run],
    judge: Callable[[Encoder], Score],
    progress: Progress,
) -> Selection:
    """Train and judge, one after the other; a run that goes wrong is named, and the next one begins."""
    hopeless = set[str]()
    for number, turn in enumerate(turns, 1):
        if turn.name in hopeless:
            continue
        again = resumed and (turn.place / "run.json").is_file()
        done = again and read_json(turn.place / "run.json").get("status") == "finished"
        told = Progress() if done else progress
        told.notice(f"{number} of {len(turns)}: {turn.label}")
        try:
            run = train(output=turn.place, resume=again, progress=told, **turn.given)
        except (TrainingError, SettingsError, BaseEncoderError) as error:  # of the others nothing is wrong
            who, reason = turn.label, getattr(error, "reason", str(error))
            if not isinstance(error, TrainingError):  # nor would another seed do
                who = turn.name
                hopeless.add(who)
            found = replace(found, failures={**found.failures, who: reason})
            progress.notice(f"{who} failed: {reason}")
            continue
        score = judge(load_encoder(turn.place / "model"))
        found = found.beside(turn.name, run, score)
        progress.notice(f"{turn.label}: {score.score:.2f}, {score.score - found.base.score:+z.2f} against untrained")
    return found


def _finish(found: Selection, directory: RunDirectory, about: dict[str, str]) -> None:
    """Put the chosen model where it is looked for, and write the page.

    Raises:
        TrainingError: there is none to choose from.
    """
    if not found.candidates:
        name, reason = next(iter(found.failures.items()))
        raise TrainingError(f"no method went well; {name}: {reason}")
    if rank() == 0:
        if found.chosen:
            take_over(found.chosen.run.directory, directory.path)
        else:  # of an earlier choice
            shutil.rmtree(directory.model, ignore_errors=True)
            (directory.path / "scores.json").unlink(missing_ok=True)
        write_json(directory.path / RESULT, found.to_json())
        write_text(directory.path / PAGE, _page(found, about))
        directory.update(status="finished", chosen=found.chosen.name if found.chosen else None)
    wait()


def _page(found: Selection, about: dict[str, str]) -> str:
    curves = {}
    for each in found.candidates:
        metrics = RunDirectory(each.run.directory).metrics()
        curves[each.name] = [(int(entry["step"]), float(entry["loss"])) for entry in metrics if "loss" in entry]
        asked, steps = each.run.record["asked"], each.run.record.get("steps")
        how = [f"{key.replace('_', ' ')} {asked['settings'][key]:g}" for key in _TOLD] if steps else ["a fit"]
        how += [f"budget {budget:g} s"] if steps and (budget := asked["settings"].get("budget")) else []
        how += ["the best of its runs"] if len(each.runs) > 1 else []
        about[each.name] = ", ".join([asked["method"], f"pooling {asked['pooling']}", *how])
    about["versions"] = ", ".join(f"{name} {version}" for name, version in versions().items())
    neighbours = found.chosen.run.neighbours if found.chosen else []
    return comparison_page(found.to_json(), about, neighbours, curves)


def _arguments(
    methods: str | Sequence[str] | Mapping[str, Mapping[str, Any]], common: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """What `selfsent.train` is given, by name: what is common, and what is a method's own in its place."""
    names = [methods] if isinstance(methods, str) else methods
    named = names if isinstance(names, Mapping) else {name: {} for name in names}
    found = {}
    for name, own in named.items():
        method = get_method(str(own.get("method", name)))
        shared = dict(common)
        if method.closed_form or own.keys() & set(DURATIONS):
            shared = {key: value for key, value in shared.items() if key not in DURATIONS}
        elif not shared.keys() & set(DURATIONS):
            shared["budget"] = BUDGET
        found[name] = {**shared, **own, "method": method.name}
    return found


def _plan(name: str, base: str | Path, given: Mapping[str, Any]) -> Plan:
    """What a method would do.

    Raises:
        SettingsError: something is wrong with its settings, or it makes no vectors.
    """
    if fixed := given.keys() & {"base", "output", "corpus"}:
        raise SettingsError(f"{name}: {fixed.pop()} is the same for all methods")
    if name == UNTRAINED:
        raise SettingsError(f"{name} is what the base is called: give the method another name")
    method = get_method(given["method"])
    try:
        plan = make_plan(method, base, **{key: value for key, value in given.items() if key != "method"})
    except SettingsError as error:
        raise SettingsError(f"{name}: {error}") from None
    if plan.joins:
        raise SettingsError(f"{name} makes scores of pairs, and no vectors to be compared: leave it out")
    return plan


@dataclass(frozen=True)
class _Turn:
    """One run: of which method, what to call it, where it goes, and what `selfsent.train` is given."""

    name: str
    label: str
    place: Path
    given: dict[str, Any]


def _turns(
    asked: Mapping[str, Mapping[str, Any]], plans: Mapping[str, Plan], directory: Path, seeds: int
) -> list[_Turn]:
    """All runs, all methods with one seed first: a comparison that is stopped lacks seeds then, and no method.

    What takes no steps is the same with every seed, and done once.

    Raises:
        SettingsError: two would lie in one place.
    """
    places, found = _places(asked), []
    for number, name in product(range(seeds), asked):
        if number and get_method(asked[name]["method"]).closed_form:
            continue
        seed, place = plans[name].settings.seed + number, directory / "methods" / places[name]
        place, label = (place / "seeds" / str(seed) if number else place), f"{name}, seed {seed}"
        found.append(_Turn(name, label if seeds > 1 else name, place, {**asked[name], "seed": seed}))
    return found


def _places(names: Iterable[str]) -> dict[str, str]:
    """A directory's name for each, of letters, digits and dots.

    Raises:
        SettingsError: two would lie in one place.
    """
    found: dict[str, str] = {}
    for name in names:
        place = re.sub(r"[^\w.]+", "-", name).strip("-.") or "-"
        if place in found.values():
            raise SettingsError(f"two methods would lie in methods/{place}: give them names that differ in letters")
        found[name] = place
    return found
