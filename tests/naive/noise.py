"""Noise on lists of words, and the check that a damaged sentence can have come from a whole one."""


def words_of(ids, starts):
    """The words of a sentence, each a tuple of its tokens."""
    words = []
    for token, begins in zip(ids, starts, strict=True):
        if begins or not words:
            words.append(())
        words[-1] += (token,)
    return words


def delete(words, chances, ratio):
    """Keep the words whose chance is not below `ratio`; the one of the largest chance where none would be left."""
    kept = [word for word, chance in zip(words, chances, strict=True) if chance >= ratio]
    return kept or [words[max(range(len(words)), key=lambda place: chances[place])]]


def swap(words, chances, ratio):
    """The words of the smallest chances change places in a circle: each gets the place of the one drawn before it."""
    count = min(len(words), max(2, round(ratio * len(words))))
    circle = sorted(range(len(words)), key=lambda place: chances[place])[:count]
    swapped = list(words)
    for place, following in zip(circle, circle[1:] + circle[:1], strict=True):
        swapped[place] = words[following]
    return swapped


def exchange(words, chances, ratio, others):
    """Words whose chance is below `ratio` become the single token of `others` at their place."""
    together = zip(words, chances, others, strict=True)
    return [(other,) if chance < ratio else word for word, chance, other in together]


def add(words, chances, ratio, others):
    """In front of words whose chance is below `ratio` stands the single token of `others` at their place."""
    together = zip(words, chances, others, strict=True)
    return [each for word, chance, other in together for each in ([(other,)] if chance < ratio else []) + [word]]


def is_subsequence(part, whole):
    """Whether `part` is `whole` less some of its items, in the same order."""
    rest = iter(whole)
    return all(any(item == other for other in rest) for item in part)


def pick(words, chances, count):
    """Keep the `count` words of the smallest chances, in their order."""
    chosen = sorted(range(len(words)), key=lambda place: chances[place])[:count]
    return [words[place] for place in sorted(chosen)]
