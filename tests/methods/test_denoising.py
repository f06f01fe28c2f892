"""Masked language modelling and TSDAE, next to loops by transformers."""

import numpy as np
import pytest
import torch

import tiny
from naive import objectives
from selfsent.data.packed import Packed
from selfsent.data.targets import IGNORED
from selfsent.methods import get_method
from selfsent.methods.denoising import MLM, TSDAE
from selfsent.models.decoders.transformer import SmallDecoder, TiedDecoder
from selfsent.models.loading import load_encoder
from selfsent.models.packing import pack
from selfsent.settings import Settings

LIKE_BERT = ("bert", "roberta", "xlm-roberta", "electra")
ENCODERS = [name for name in tiny.ARCHITECTURES if name not in tiny.ENCODER_DECODER]


def slow_models(directory, learner):
    """Encoder and decoder by transformers alone, from the base's own files; only the new looks are the learner's."""
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM

    plain = {"attn_implementation": "eager", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    encoder = AutoModel.from_pretrained(directory, **plain)
    masked = AutoModelForMaskedLM.from_pretrained(directory)
    config = AutoConfig.from_pretrained(directory, is_decoder=True, add_cross_attention=True, **plain)
    decoder = AutoModelForCausalLM.from_config(config)
    left_out = decoder.load_state_dict(masked.state_dict(), strict=False)
    assert all(".crossattention." in name for name in left_out.missing_keys)
    assert not left_out.unexpected_keys
    for layer, memory in zip(decoder.base_model.encoder.layer, learner.decoder.cross_attention, strict=True):
        for theirs, ours in looks(layer, memory):
            theirs.load_state_dict(ours.state_dict())
    return encoder, decoder


def looks(layer, memory):
    """Pairs of what looks at the sentence vector: theirs, ours."""
    cross = layer.crossattention
    pairs = (cross.self.value, memory.value), (cross.output.dense, memory.output), (cross.output.LayerNorm, memory.norm)
    return pairs


def perturb(learner):
    """Values that are not those of the initialisation, so that a forgotten bias or norm shows."""
    with torch.no_grad():
        for parameter in learner.decoder.cross_attention.parameters():
            parameter += 0.1 * torch.randn_like(parameter)


def grad(parameter):
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


@pytest.mark.parametrize(("name", "tie"), [*((name, True) for name in LIKE_BERT), ("bert", False), ("electra", False)])
def test_loss_and_gradients_equal_an_explicit_decoder_loop(name, tie, base_of, learner_of, damaged_and_whole):
    learner = learner_of("tsdae", name, tie=tie)
    assert isinstance(learner.decoder, TiedDecoder)
    perturb(learner)
    encoder, decoder = slow_models(base_of(name), learner)
    damaged, whole = damaged_and_whole(learner.model.tokenizer)
    loss = learner([tiny.pack(damaged), tiny.pack(whole)])
    expected = objectives.tsdae(encoder, decoder, damaged, whole)
    assert loss.count == sum(len(ids) - 1 for ids in whole)
    torch.testing.assert_close(loss.total, expected, rtol=1e-5, atol=1e-4)

    loss.total.backward()
    expected.backward()
    theirs = dict(decoder.base_model.named_parameters())
    words = learner.model.transformer.get_input_embeddings().weight
    for key, parameter in learner.model.transformer.named_parameters():
        if not parameter.requires_grad:
            continue
        wanted = grad(encoder.get_parameter(key))
        # Untied, the copy has the decoder's share, but the projection to the vocabulary stays the encoder's embedding.
        if tie:
            wanted = wanted + grad(theirs[key])
        if tie or parameter is not words:
            torch.testing.assert_close(grad(parameter), wanted, rtol=1e-3, atol=2e-4, msg=key)
    for layer, memory in zip(decoder.base_model.encoder.layer, learner.decoder.cross_attention, strict=True):
        for slow, fast in looks(layer, memory):
            for a, b in zip(fast.parameters(), slow.parameters(), strict=True):
                torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=2e-4)
        # Why the learner has no query and key there: a softmax over one slot is 1.
        for unneeded in (layer.crossattention.self.query, layer.crossattention.self.key):
            assert not grad(unneeded.weight).any()


@pytest.mark.parametrize("name", ENCODERS)
@torch.no_grad()
def test_each_prediction_equals_that_from_the_prefix_alone(name, learner_of, damaged_and_whole):
    """Neither what follows a token nor another sentence reaches its prediction."""
    learner = learner_of("tsdae", name)
    perturb(learner)
    assert isinstance(learner.decoder, TiedDecoder if name in LIKE_BERT else SmallDecoder)
    damaged, whole = damaged_and_whole(learner.model.tokenizer)
    vectors = learner.model(tiny.pack(damaged))
    together = tiny.pack(whole)
    states = learner.decoder(learner.model, vectors, together)
    for number in (0, 4):
        for length in (1, 2, len(whole[number])):
            prefix = tiny.pack([whole[number][:length]])
            alone = learner.decoder(learner.model, vectors[number : number + 1], prefix)
            found = states[together.first[number] + length - 1]
            torch.testing.assert_close(alone[-1], found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", tiny.CAUSAL)
@torch.no_grad()
def test_without_a_special_token_in_front_the_first_word_is_predicted_too(name, learner_of):
    learner = learner_of("tsdae", name)
    whole = tiny.encode(learner.model.tokenizer, ["alpha beta gamma", "delta"])
    packed = tiny.pack(whole)
    loss = learner([packed, packed])
    assert loss.count == sum(map(len, whole))
    head, vectors = learner.model.require_head("tsdae", hidden=False), learner.model(packed)
    expected = torch.zeros(())
    for number, ids in enumerate(whole):
        for place, word in enumerate(ids):
            prefix = tiny.pack([[learner.decoder.start, *ids[:place]]])
            state = learner.decoder(learner.model, vectors[number : number + 1], prefix)[-1]
            expected -= head.output(head(state[None]))[0].log_softmax(-1)[word]
    torch.testing.assert_close(loss.total, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["bert", "modernbert", "t5"])
@pytest.mark.parametrize("wanted", [True, False])
def test_the_decoder_drops_out_where_that_is_wanted(name, wanted, learner_of):
    learner = learner_of("tsdae", name, dropout=0.5, decoder_dropout=wanted).train()
    encoding, decoding = [], []
    learner.model.register_forward_hook(lambda *_: encoding.append(modes(learner.model)))
    learner.decoder.register_forward_pre_hook(lambda *_: decoding.append(modes(learner)))
    learner([tiny.pack([[2, 7, 8, 9, 3], [2, 8, 3]])] * 2).total.backward()
    assert encoding == [{True}]
    assert decoding == [{wanted}]
    assert modes(learner) == {True}


def modes(module):
    return {part.training for part in module.modules() if isinstance(part, torch.nn.Dropout) and part.p}


def test_tied_weights_are_the_encoder_s_own_tensors_and_others_share_nothing(learner_of, damaged_and_whole):
    tied, *apart = (learner_of("tsdae", **given) for given in ({}, {"tie": False}, {"decoder_layers": 3}))
    assert set(tied.decoder.parameters()) == set(tied.decoder.cross_attention.parameters())
    for learner in apart:
        assert not {*learner.model.parameters()} & {*learner.decoder.parameters()}
    assert isinstance(apart[1].decoder, SmallDecoder)
    assert len(apart[1].decoder.layers) == len(apart[1].decoder.cross_attention) == 3
    damaged, whole = damaged_and_whole(apart[1].model.tokenizer)
    apart[1]([tiny.pack(damaged), tiny.pack(whole)]).total.backward()
    assert all(parameter.grad is not None for parameter in apart[1].decoder.parameters())


@pytest.mark.parametrize("name", ["bert", "t5"])
def test_a_narrower_vector_is_led_to_the_decoder(name, base_of, tmp_path, damaged_and_whole):
    """The sentence vector may be narrower than the transformer: a dense module stands behind the pooling."""
    from sentence_transformers.sentence_transformer.modules import Dense

    encoder = load_encoder(base_of(name))
    tiny.save_modules(tmp_path / "dense", *encoder.sentence_transformer, Dense(tiny.SIZE, 12))
    narrow = load_encoder(tmp_path / "dense")
    if name in tiny.ENCODER_DECODER:
        narrow.whole = base_of(name)
    learner = get_method("tsdae").learner(narrow, TSDAE())
    damaged, whole = damaged_and_whole(encoder.tokenizer)
    learner([tiny.pack(damaged), tiny.pack(whole)]).total.backward()
    assert narrow.sentence_transformer[2].linear.weight.grad.any()


def test_whole_heads_are_dropped_where_that_is_wanted(learner_of):
    """Of two heads, at a rate of a half, what a position is told takes four values, and one without dropping."""
    for wanted, found in ((False, 1), (True, 4)):
        decoder = learner_of("tsdae", dropout=0.5, drop_heads=wanted).decoder
        vectors, states, sentence = torch.randn(1, tiny.SIZE), torch.zeros(1, 200, tiny.SIZE), torch.zeros(200).long()
        with torch.no_grad():
            memory = decoder.cross_attention[0]
            memory.dropout.p = 0.0
            told = memory(states, vectors, sentence)[0]
        assert len(told.round(decimals=4).unique(dim=0)) == found


@pytest.mark.parametrize("name", ["bert", "albert", "modernbert"])
def test_from_scratch_nothing_of_the_base_is_left(name, encoder_of):
    base, scratch = encoder_of(name, "cls", seed=5), encoder_of(name, "cls", seed=5)
    learners = [get_method("tsdae").learner(each, TSDAE(scratch=new)) for each, new in ((base, False), (scratch, True))]
    for (key, before), after in zip(learners[0].named_parameters(), learners[1].parameters(), strict=True):
        assert before.shape == after.shape
        if after.requires_grad and key.startswith("model."):
            assert not torch.equal(before, after), key
    assert scratch.language_model_head.output.weight is scratch.transformer.get_input_embeddings().weight


def masked_batch(tokenizer, whole):
    """Every fourth token hidden: lists of ids and targets, and the packed batch."""
    inputs = [[tokenizer.mask_token_id if n % 4 == 1 else t for n, t in enumerate(ids)] for ids in whole]
    targets = [[t if n % 4 == 1 else IGNORED for n, t in enumerate(ids)] for ids in whole]
    lengths = np.array([len(ids) for ids in whole])
    return inputs, targets, Packed(np.concatenate(inputs), lengths, np.concatenate(targets))


@pytest.mark.parametrize("name", ["bert", "albert", "distilbert", "mpnet", "modernbert"])
def test_mlm_equals_full_scores_position_by_position(name, base_of, learner_of, damaged_and_whole):
    from transformers import AutoModelForMaskedLM

    learner = learner_of("mlm", name)
    model = AutoModelForMaskedLM.from_pretrained(base_of(name), attn_implementation="eager").eval()
    _, whole = damaged_and_whole(learner.model.tokenizer)
    inputs, targets, packed = masked_batch(learner.model.tokenizer, whole)
    loss = learner([packed])
    expected = objectives.mlm(model, inputs, targets, IGNORED)
    assert loss.count == sum(goal != IGNORED for goals in targets for goal in goals)
    torch.testing.assert_close(loss.total, expected, rtol=1e-5, atol=1e-4)

    loss.total.backward()
    expected.backward()
    theirs = dict(model.base_model.named_parameters())
    for key, parameter in learner.model.transformer.named_parameters():
        if parameter.requires_grad and key in theirs and theirs[key].grad is not None:
            torch.testing.assert_close(parameter.grad, theirs[key].grad, rtol=1e-3, atol=2e-4, msg=key)
    own = learner.model.language_model_head.output
    if own.bias is not None:
        torch.testing.assert_close(own.bias.grad, model.get_output_embeddings().bias.grad, rtol=1e-3, atol=2e-4)


def test_modules_after_the_transformer_stay_as_they_are(encoder_of):
    """Or several processes would wait for its gradients."""
    from sentence_transformers.sentence_transformer.modules import Dense

    model = encoder_of("bert")
    model.sentence_transformer.append(Dense(tiny.SIZE, 8))
    learner = get_method("mlm").learner(model, MLM())
    packed = pack(model, tiny.make_sentences(4))
    packed.given_targets = packed.given_ids.copy()
    learner([packed]).total.backward()
    assert [name for name, each in learner.named_parameters() if each.requires_grad and each.grad is None] == []


def test_embeddings_may_learn_at_a_rate_of_their_own(encoder_of):
    learner = get_method("mlm").learner(encoder_of("bert"), MLM(embedding_rate=0.05))
    groups = learner.parameter_groups(Settings(learning_rate=0.1))
    rates = {each: group.get("lr", 0.1) for group in groups for each in group["params"]}
    tables = [each for each in learner.model.transformer.embeddings.parameters() if each.ndim > 1]
    assert len(tables) == 3  # of words, positions and types
    assert rates.keys() == {each for each in learner.parameters() if each.requires_grad}
    assert [rates.pop(each) for each in tables] == pytest.approx([0.005] * 3)
    assert set(rates.values()) == {0.1}


def test_a_span_is_a_sentence_among_its_neighbours(encoder_of):
    """Four sentences are a document; a row reads some of its own in order, itself among them."""
    model = encoder_of("bert")
    learner = get_method("mlm").learner(model, MLM(span=4))
    settings, sentences = Settings(batch_size=16, max_length=400), tiny.make_sentences(16)
    batches = tiny.make_batches(learner, learner.options.views(), settings, sentences)
    ids = [model.tokenizer(each, add_special_tokens=False)["input_ids"] for each in sentences]
    read = set()
    for epoch in range(40):
        (packed,) = batches.views_of(np.arange(16), epoch)
        whole = np.where(packed.given_targets == IGNORED, packed.given_ids, packed.given_targets)
        texts = np.split(whole, np.cumsum(packed.given_lengths)[:-1])
        read |= {(row, tuple(text[1:-1])) for row, text in enumerate(texts)}
    begins = [(begin, length) for length in (1, 2, 3, 4) for begin in range(16) if begin % 4 + length <= 4]
    spans = {range(begin, begin + length): np.concatenate(ids[begin : begin + length]) for begin, length in begins}
    assert read == {(row, tuple(text)) for span, text in spans.items() for row in span}
