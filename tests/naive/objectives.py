"""The methods' losses, slow and straight from the papers' equations: one sentence, one position, one pair at a time."""

import math

import torch


def tsdae(encoder, decoder, damaged, whole):
    """Minus the sum over sentences and positions t of log p(w_t | w_<t, s): Wang et al. 2021, section 3.

    Args:
        encoder: a transformers model; s is its last state of the first token.
        decoder: a transformers model for causal language modelling with cross-attention; s is its memory of one slot.
        damaged: lists of token ids to encode.
        whole: lists of token ids to predict.
    """
    total = torch.zeros(())
    for source, target in zip(damaged, whole, strict=True):
        vector = encoder(input_ids=torch.tensor([source])).last_hidden_state[:, :1]
        for t in range(1, len(target)):
            scores = decoder(input_ids=torch.tensor([target[:t]]), encoder_hidden_states=vector).logits[0, -1]
            total = total - torch.log_softmax(scores, dim=-1)[target[t]]
    return total


def mlm(model, inputs, targets, ignored):
    """Minus the sum over hidden positions i of log p(w_i | damaged sentence): Devlin et al. 2019, section 3.1.

    Args:
        model: a transformers model for masked language modelling.
        inputs: lists of token ids, some of them masked.
        targets: lists of what to predict, `ignored` where nothing.
        ignored: that mark.
    """
    total = torch.zeros(())
    for ids, goals in zip(inputs, targets, strict=True):
        scores = model(input_ids=torch.tensor([ids])).logits[0]
        for position, goal in enumerate(goals):
            if goal != ignored:
                total = total - torch.log_softmax(scores[position], dim=-1)[goal]
    return total


def attention(query, key, value, lengths, causal=False, window=None):
    """Softmax attention one sentence, head and query at a time; query, key, value: (tokens, heads, size)."""
    out = torch.zeros_like(query)
    begin = 0
    for length in lengths:
        for head in range(query.shape[1]):
            for i in range(length):
                seen = [j for j in range(length) if (not causal or j <= i) and (window is None or abs(i - j) <= window)]
                scores = torch.stack([query[begin + i, head] @ key[begin + j, head] for j in seen])
                weights = torch.softmax(scores / math.sqrt(query.shape[2]), dim=0)
                for weight, j in zip(weights, seen, strict=True):
                    out[begin + i, head] += weight * value[begin + j, head]
        begin += length
    return out


def convolution(states, weight, bias):
    """A 1-D convolution over one sentence, place by place; beyond its borders everything is zero.

    Args:
        states: (length, d).
        weight: (filters, d, window).
        bias: (filters,).
    """
    half = weight.shape[2] // 2
    out = []
    for place in range(len(states)):
        value = bias
        for tap in range(weight.shape[2]):
            if 0 <= place + tap - half < len(states):
                value = value + weight[:, :, tap] @ states[place + tap - half]
        out.append(value)
    return torch.stack(out)
