"""The distance of two texts, as the recursion says it."""


def edit_distance(a, b):
    """Fewest insertions, deletions and replacements of characters: Wagner and Fischer's table, row by row."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        before, row = row, [i]
        for j, y in enumerate(b, start=1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
    return row[-1]
