"""How far a view is from its sentence."""

from __future__ import annotations


def edit_distance(a: str, b: str) -> int:
    """Fewest characters to insert, delete or replace that make one text the other.

    Bit-parallel: the columns of the table as bits of Python's long integers (Myers 1999; Hyyrö 2003).
    """
    a, b = _differing(a, b)
    if not a or not b:
        return len(a) + len(b)
    places: dict[str, int] = {}
    for place, character in enumerate(a):
        places[character] = places.get(character, 0) | 1 << place
    every, last = (1 << len(a)) - 1, 1 << len(a) - 1
    more, less, distance = every, 0, len(a)  # bits: where the table's column rises, where it falls
    for character in b:
        same = places.get(character, 0)
        vertical = same | less
        diagonal = (((same & more) + more) ^ more) | same
        rise, fall = less | ~(diagonal | more) & every, more & diagonal
        distance += bool(rise & last) - bool(fall & last)
        rise, fall = (rise << 1 | 1) & every, fall << 1 & every
        more, less = fall | ~(vertical | rise) & every, rise & vertical
    return distance


def _differing(a: str, b: str) -> tuple[str, str]:
    """Two texts without what they have in common at their beginning and end, which is mostly nearly all of them."""
    most = min(len(a), len(b))
    begin = next((place for place in range(most) if a[place] != b[place]), most)
    most -= begin
    end = next((place for place in range(most) if a[-1 - place] != b[-1 - place]), most)
    return a[begin : len(a) - end], b[begin : len(b) - end]
