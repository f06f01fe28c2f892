import pytest
import torch

import tiny
from naive import objectives
from selfsent.methods import get_method
from selfsent.methods.tsdae import NOISES, TSDAE
from selfsent.models.decoders.transformer import SmallDecoder, TiedDecoder

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


def test_tied_weights_are_the_encoder_s_own_tensors(learner_of):
    tied, untied = learner_of("tsdae"), learner_of("tsdae", tie=False)
    own = {id(p) for p in tied.decoder.parameters()}
    assert own == {id(p) for p in tied.decoder.cross_attention.parameters()}
    layers = sum(p.numel() for p in untied.model.transformer.encoder.parameters())
    assert (
        sum(p.numel() for p in untied.decoder.parameters()) > sum(p.numel() for p in tied.decoder.parameters()) + layers
    )
    encoder = {id(p) for p in untied.model.parameters()}
    assert not encoder & {id(p) for p in untied.decoder.parameters()}


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


@pytest.mark.parametrize("name", ENCODERS)
@torch.no_grad()
def test_the_damaged_sentence_counts(name, learner_of, damaged_and_whole):
    learner = learner_of("tsdae", name)
    damaged, whole = damaged_and_whole(learner.model.tokenizer)
    target = tiny.pack(whole)
    learner.model.register_forward_hook(lambda *call: 100 * call[-1])  # a tiny random decoder hardly listens
    loss, again = (learner([tiny.pack(damaged), target]).total for _ in range(2))
    assert loss == again
    other = learner([tiny.pack([damaged[0], *damaged[:0:-1]]), target]).total
    assert loss != other


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


def test_a_model_as_wide_as_another_s_vector_is_still_decoded(learner_of, damaged_and_whole, base_of, tmp_path):
    """The sentence vector may be narrower than the transformer: a dense module stands behind the pooling."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer

    from selfsent.models.loading import load_encoder

    modules = [Transformer(str(base_of("bert"))), Pooling(tiny.SIZE, "cls"), Dense(tiny.SIZE, 12)]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "dense"), create_model_card=False)
    encoder = load_encoder(tmp_path / "dense")
    learner = get_method("tsdae").learner(encoder, TSDAE())
    damaged, whole = damaged_and_whole(encoder.tokenizer)
    learner([tiny.pack(damaged), tiny.pack(whole)]).total.backward()
    assert encoder.sentence_transformer[2].linear.weight.grad.any()


@pytest.mark.parametrize("noise", NOISES)
def test_the_noise_is_put_on_the_sentence_that_is_encoded(noise):
    damaged, whole = TSDAE(noise=noise, ratio=0.3).views()
    assert damaged.noise == NOISES[noise](0.3)
    assert whole.noise is None


@pytest.mark.parametrize("name", ["bert", "modernbert"])
def test_dropped_heads_are_whole_heads(name, learner_of):
    """What is said at a position is the sum of what some heads say, scaled up; without training, of what all say."""
    learner = learner_of("tsdae", name, dropout=0.5, drop_heads=True)
    assert not any(memory.head_dropout for memory in learner_of("tsdae", name, dropout=0.5).decoder.cross_attention)
    memory = learner.decoder.cross_attention[0]
    memory.dropout.p = 0.0
    vectors, sentence = torch.randn(2, tiny.SIZE), torch.arange(2).repeat_interleave(200)
    states = torch.zeros(1, 400, tiny.SIZE)
    parts = torch.zeros(2, memory.heads, tiny.SIZE)
    size = tiny.SIZE // memory.heads
    with torch.no_grad():
        value = memory.value(vectors)
        for head in range(memory.heads):
            columns = slice(head * size, (head + 1) * size)
            parts[:, head] = value[:, columns] @ memory.output.weight[:, columns].T
        found = memory.train()(states, vectors, sentence)[0]
        for number in range(2):
            kept = torch.cartesian_prod(*[torch.tensor([0.0, 2.0])] * memory.heads).view(-1, memory.heads)
            possible = memory.norm(kept @ parts[number] + memory.output.bias)
            distances = torch.cdist(found[sentence == number], possible)
            assert distances.amin(1).max() < 0.02 < 1 < torch.pdist(possible).min()
            assert len(set(distances.argmin(1).tolist())) == len(kept)
        plain = memory.eval()(states, vectors, sentence)[0]
        torch.testing.assert_close(plain, memory.norm(parts.sum(1) + memory.output.bias)[sentence])


def test_a_decoder_of_its_own_shares_nothing_but_the_words(learner_of, damaged_and_whole):
    learner = learner_of("tsdae", decoder_layers=3)
    assert isinstance(learner.decoder, SmallDecoder)
    assert len(learner.decoder.layers) == len(learner.decoder.cross_attention) == 3
    encoder = {id(parameter) for parameter in learner.model.parameters()}
    assert not encoder & {id(parameter) for parameter in learner.decoder.parameters()}
    damaged, whole = damaged_and_whole(learner.model.tokenizer)
    learner([tiny.pack(damaged), tiny.pack(whole)]).total.backward()
    assert all(parameter.grad is not None for parameter in learner.decoder.parameters())


@pytest.mark.parametrize("name", ["bert", "albert", "modernbert"])
def test_from_scratch_nothing_of_the_base_is_left(name, encoder_of):
    base, scratch = encoder_of(name, "cls", seed=5), encoder_of(name, "cls", seed=5)
    before = {key: parameter.clone() for key, parameter in base.named_parameters()}
    get_method("tsdae").learner(scratch, TSDAE(scratch=True))
    for key, parameter in scratch.named_parameters():
        assert parameter.shape == before[key].shape
        if parameter.requires_grad:
            assert not torch.equal(parameter, before[key]), key
    head, words = scratch.language_model_head, scratch.transformer.get_input_embeddings()
    assert head.output.weight is words.weight
    assert head.output.weight.requires_grad


@pytest.mark.parametrize("name", ["bert", "modernbert"])
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
