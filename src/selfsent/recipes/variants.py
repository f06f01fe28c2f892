"""The variants of a recipe: named changes to the rest, and the products of several axes of such changes."""

from __future__ import annotations

from itertools import product

from selfsent.errors import guess
from selfsent.recipes.document import Section

RECIPE = (
    *("title", "note", "base", "all", "stages", "encoder", "evaluate"),
    *("variants", "axes", "published", "cross_validate", "shows"),
)
"""What a recipe may say."""
_OF_VARIANT = tuple(key for key in RECIPE if key not in ("variants", "axes"))


def variants_of(document: Section) -> dict[str, Section]:
    """The changes of every variant, by name; none where the recipe has no variants.

    A variant of `axes` has one change of each axis, and a name such as `tsdae, askubuntu`.

    Raises:
        SettingsError: a variant changes what it cannot, or two have one name.
    """
    named = document.section("variants")
    found = {name: _checked(named.section(name), name) for name in named}
    axes = document.section("axes")
    choices = [axes.section(axis) for axis in axes]
    for names in product(*choices) if choices else ():
        name = ", ".join(names)
        if name in found:
            axes.fail(f"there are two variants {name!r}")
        changes = [_checked(axis.section(one), one) for axis, one in zip(choices, names, strict=True)]
        whole = changes[0]
        for change in changes[1:]:
            whole = _over(whole, change)
        found[name] = whole
    return found


def with_variant(document: Section, variant: str | None) -> tuple[Section, str | None]:
    """The document with what a variant changes, the first one by default; and the variant's name.

    Raises:
        SettingsError: there is no such variant.
    """
    variants = variants_of(document)
    if not variants:
        if variant is not None:
            document.fail(f"there is no variant {variant!r}: this recipe has none")
        return document, None
    chosen = next(iter(variants)) if variant is None else variant
    if chosen not in variants:
        place = document.section("variants") or document.section("axes")
        place.fail(f"there is no variant {chosen!r}; {guess(chosen, variants)}")
    changes = variants[chosen]
    whole = document.over(changes)
    if changes.get("encoder") is not None and "stages" not in changes:
        whole.pop("stages", None)  # an encoder that is scored as it is stands in place of all training
    return whole, chosen


def _checked(changes: Section, name: str) -> Section:
    changes.only(_OF_VARIANT, f"variant {name}")
    return changes


def _over(one: Section, other: Section) -> Section:
    """Both changes in one; what the other takes away by null stays taken away."""
    merged = Section(one.path, one.line)
    for source in (one, other):
        for key, value in source.items():
            old = merged.get(key)
            both = isinstance(old, Section) and isinstance(value, Section)
            merged.put(key, _over(old, value) if both else value, source.lines[key])  # type: ignore[arg-type]  # both are
    return merged
