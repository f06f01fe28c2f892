"""Weights of drawn queries by how real ones look: raking over a table of cells, one margin after the other."""


def raked(drawn, real):
    """Weights, of mean 1, by which `drawn` has the shares of `real` in each of three classes, smoothed.

    Each real share is that of the real queries together with as many queries, spread like the drawn ones, as the drawn
    ones have values of this class. Real queries with a value that no drawn one has do not count.
    """
    cells = {}
    for look in drawn:
        cells[look] = cells.get(look, 0) + 1
    held = {look: float(count) for look, count in cells.items()}
    for _ in range(500):
        for place in range(3):
            values = sorted({look[place] for look in drawn})
            usable = [look for look in real if look[place] in values]
            for value in values:
                of_drawn = sum(look[place] == value for look in drawn) / len(drawn)
                of_real = sum(look[place] == value for look in usable)
                share = (of_real + len(values) * of_drawn) / (len(usable) + len(values))
                now = sum(mass for look, mass in held.items() if look[place] == value)
                for look in held:
                    if look[place] == value:
                        held[look] = held[look] * share * len(drawn) / now
    return [held[look] / cells[look] for look in drawn]
