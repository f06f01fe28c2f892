"""The YAML of `exam --plan`: rows with the names of models in place of TABLE and ENCODER."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.errors import SettingsError
from selfsent.naming import name_given, short_names

if TYPE_CHECKING:
    from selfsent.exam.plan import Plan
    from selfsent.recipes.document import Section

STANDARD, PROGRAMS = "standard", "programs"
"""Plans that ship."""
_KEYS = {"name": "str", "model": "str", "train": "", "candidates": "int", "prompts": "", "after": "str"}
_RULE = ("worth", "cheap")
_NEEDED = ("name", "model")


def read_plan(given: str, table: str, encoder: str | None) -> Plan:
    """The plan in a file, or one that ships.

    Args:
        given: `standard`, `programs`, or a YAML file.
        table: for TABLE.
        encoder: for ENCODER, perhaps as NAME=MODEL; rows with it are left out if None.

    Raises:
        SettingsError: the file cannot be read, or says what no plan can; with its line.
        BaseEncoderError: a model that is not there.
    """
    from selfsent.exam.plan import TRAINED, Plan, Row
    from selfsent.exam.trial import encoders_in
    from selfsent.recipes.document import Section, read_document
    from selfsent.scorers.load_scorer import check_model

    document = read_document(plan_file(given))
    document.only(("rows", *_RULE), "a plan")
    rule = {key: float(document.typed(key, "float")) for key in _RULE if key in document}
    if bad := next((key for key, value in rule.items() if value < 0), None):
        document.fail(f"{bad} must not be below 0", bad)
    sections = document.get("rows")
    if not isinstance(sections, list) or not all(isinstance(each, Section) for each in sections):
        document.fail("rows must be a list of rows, each with name and model", "rows")
    short, model = name_given(encoder) if encoder else (None, "")
    models = {"TABLE": table, "ENCODER": model}
    names = {"TABLE": table, "ENCODER": short or (short_names([model])[0] if model else "")}
    rows = list[Row]()
    for section in sections:
        values = _checked(section)
        of_row = [values["model"], *map(str, values.get("train", {}).values())]
        if not model and any("ENCODER" in each for each in of_row):
            continue
        train = {k: _put(v, models) for k, v in values["train"].items()} if "train" in values else None
        name, after = (_put(values.get(key), names) for key in ("name", "after"))
        more = {"candidates": values.get("candidates"), "prompts": values.get("prompts"), "after": after}
        rows.append(Row(name, _put(values["model"], models), train, **more))
        if train is None:
            for each in [rows[-1].model, *encoders_in(rows[-1].model)]:
                check_model(each)
        elif TRAINED not in rows[-1].model:
            section.fail(f"train makes a model, so model must have {TRAINED} in it", "model")
    return Plan(rows, **rule)


def plan_file(given: str) -> Path:
    """The file of a plan."""
    return (
        Path(str(files("selfsent.exam") / "plans" / f"{given}.yaml")) if given in (STANDARD, PROGRAMS) else Path(given)
    )


def _checked(section: Section) -> dict[str, Any]:
    """The values of a row, of the right types."""
    section.only(_KEYS, "a row of a plan")
    for key in _NEEDED:
        if key not in section:
            section.fail(f"a row of a plan needs {key}")
    values = {key: section.typed(key, kind) for key, kind in _KEYS.items() if key in section and kind}
    if values.get("candidates", 1) < 1:
        section.fail("candidates must be 1 at least", "candidates")
    if "prompts" in section:
        values["prompts"] = _prompts(section)
    return values | ({"train": section.section("train")} if "train" in section else {})


def _prompts(section: Section) -> dict[str, str]:
    """The prompts of a row: texts before a query and a document; empty for `false`."""
    if section["prompts"] is False:
        return {}
    given = section.section("prompts")
    given.only(("query", "document"), "`prompts` of a row")
    return {side: given.typed(side, "str") for side in given}


def _put(value: Any, names: Mapping[str, str]) -> Any:
    """A text with names in place of their signs; anything else as it is."""
    if isinstance(value, str):
        for sign, name in names.items():
            value = value.replace(sign, name)
    return value


def chosen_row(folder: str) -> dict[str, Any]:
    """The row that `exam --plan` took, of the folder of an exam: name, model, perhaps candidates.

    Raises:
        SettingsError: no plan was tried there, or none was taken.
    """
    import json

    from selfsent.exam.plan import FOLDER, RESULT

    path = Path(folder) / FOLDER / RESULT
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return next(row for row in found["rows"] if row["name"] == found["take"])
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        problem = f"{folder} has no row to take: try a plan first, by selfsent exam {folder} --plan {STANDARD}"
        raise SettingsError(problem) from None
