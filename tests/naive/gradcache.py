"""GradCache (Gao et al., 2021, section 3.2), one step after the other."""

import torch


def backward(encode, parts, loss):
    """The loss of all parts' vectors; gradients are added to those of the weights.

    Args:
        encode: a part -> (n, d) vectors.
        parts: of the batch.
        loss: (N, d) vectors -> a scalar.
    """
    states, cached = [], []
    with torch.no_grad():  # step 1: vectors, without graph
        for part in parts:
            states.append(torch.get_rng_state())
            cached.append(encode(part))
    vectors = torch.cat(cached).requires_grad_()
    value = loss(vectors)
    value.backward()  # step 2: the gradient of each vector
    gradients = vectors.grad.split([len(part) for part in cached])
    for part, state, gradient in zip(parts, states, gradients, strict=True):  # step 3: each part again, with graph
        torch.set_rng_state(state)
        (encode(part) * gradient).sum().backward()
    return value.item()
