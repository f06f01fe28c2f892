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
