"""What a view may read of a document, by listing it: sentences are numbered 0, 1, ... and `place` is the row's own."""


def neighbours(size, place, within):
    """Every other sentence at most `within` away."""
    return [other for other in range(size) if 0 < abs(other - place) <= within]


def spans_with(size, place, longest):
    """Every span of at most `longest` sentences that holds the sentence, as (begin, end)."""
    return [
        (begin, end)
        for begin in range(size)
        for end in range(begin + 1, size + 1)
        if begin <= place < end and end - begin <= longest
    ]


def distance(one, other):
    """How far two spans are from each other: 0 where they share a sentence, 1 where they are adjacent."""
    (_, b), (c, _) = sorted([one, other])
    return max(0, c - b + 1)


def positives(size, anchor, longest, within, overlap):
    """Every span of at most `longest` sentences that is no further from the anchor than `within`."""
    spans = [(begin, end) for begin in range(size) for end in range(begin + 1, min(size, begin + longest) + 1)]
    return [span for span in spans if (0 if overlap else 1) <= distance(anchor, span) <= within]


def surroundings(size, place, within, with_itself):
    """The sentences at most `within` before and behind, the sentence itself where it stays."""
    around = [other for other in range(size) if abs(other - place) <= within]
    return around if with_itself else [other for other in around if other != place]


def title(size):
    """The first sentence, and all others; a sentence that is alone stands for both."""
    return [0], list(range(1, size)) or [0]


def mixed(size, place, within, with_itself):
    """What the two views may read: a sentence and those around it, or the title and the rest."""
    return {
        "surroundings": ([place], surroundings(size, place, within, with_itself) or [place]),
        "title": title(size),
        "neighbour": [([place], [other]) for other in neighbours(size, place, within) or [place]],
    }
