"""A loss over several sizes of the same vectors (Kusupati et al. 2022, equation 1), one size after the other."""


def loss(encoders, sizes, compare):
    """Σₘ of what `compare` makes of the vectors of all batches, cut after m numbers; every size encodes anew.

    Args:
        encoders: for each batch a function without arguments -> (n, d) vectors.
        sizes: m.
        compare: list of (n, m) vectors -> a scalar.
    """
    total = 0.0
    for size in sizes:
        total = total + compare([encode()[:, :size] for encode in encoders])
    return total
