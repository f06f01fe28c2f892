import stat
import sys
import types

import pytest
import torch

import tiny
from selfsent.augment import translate as module
from selfsent.augment.translate import Translate, batches, marian
from selfsent.errors import BaseEncoderError, MakerError, SettingsError

TEXTS = ["One line.", "Çok güzel, değil mi?", "سطر ثالث", "tab\tand  spaces", "x" * 70_000]
SENTENCES = tiny.make_sentences(6, words=(2, 6))


def program(tmp_path, code, name="program"):
    path = tmp_path / name
    path.write_text(f"#!{sys.executable} -u\nimport sys, time\n{code}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("for line in sys.stdin: print(line, end='')", None),
        ("lines = list(sys.stdin)\nfor line in lines: print(line, end='')", None),
        ("for line in sys.stdin: print(line, end=''); time.sleep(0.1)", None),
        ("print(sys.stdin.readline())", r"gave 2 answers to 5 texts$"),
        ("while True: print('y' * 9999)", "gave more answers than there were texts"),
        ("pass", "gave 0 answers to 5 texts"),
        ("sys.exit('no such language')", "gave 0 answers to 5 texts; it says: no such language"),
        ("sys.stdout.buffer.write(b'\\xff\\n' * 5)", "an answer that is not UTF-8"),
        ("time.sleep(60)", "has not answered for 1 seconds"),
    ],
)
def test_programs_and_what_they_can_do_wrong(tmp_path, monkeypatch, views, code, complaint):
    monkeypatch.setattr(module, "_LARGEST_OUTPUT", 1 << 20)
    patience = 1.0 if complaint and "1 seconds" in complaint else 20.0
    path = program(tmp_path, code)
    maker = Translate(engine="command", there=f"{path} --loud", back=path, patience=patience)
    if complaint is None:
        assert views(maker, TEXTS) == TEXTS
    else:
        with pytest.raises(MakerError, match=f"{path} --loud .*{complaint}"):
            views(maker, TEXTS)


def test_the_engine_command(tmp_path, views):
    there = program(tmp_path, "for line in sys.stdin: print(' '.join(reversed(line.split())))", "there")
    back = program(tmp_path, "for line in sys.stdin: print(line.strip().lower())", "back")
    maker = Translate(engine="command", there=there, back=back)
    assert views(maker, ["One Two Three", "İki"], size=1) == ["three two one", "İki".lower()]
    assert maker.chunk > Translate().chunk
    with pytest.raises(SettingsError, match="there is no program no-such-program"):
        views(Translate(engine="command", there="no-such-program -x", back=back), ["a"])
    for line, complaint in (("sed 's/a", "no closing quotation"), (" ", "it is empty")):
        with pytest.raises(SettingsError, match=f"is no command: {complaint}"):
            Translate(engine="command", there=line, back="cat")


def test_what_a_command_reads_decides_its_views(tmp_path):
    def identity(back="cat"):
        return Translate(engine="command", there=f"cat {model}", back=back).identity()

    model = tmp_path / "model"
    model.write_text("one")
    before = identity()
    assert before == identity() != identity("rev")
    model.write_text("another")
    assert before != identity()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tiny Marian with random weights."""
    from transformers import MarianConfig, MarianMTModel

    tokenizer = tiny.make_tokenizer("word pieces")
    config = MarianConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=128,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.sep_token_id, init_std=0.5,
        decoder_start_token_id=tokenizer.pad_token_id, forced_eos_token_id=None,
    )  # fmt: skip
    torch.manual_seed(0)
    directory = tmp_path_factory.mktemp("marian")
    MarianMTModel(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return str(directory)


def test_one_translation_a_sentence(model, views):
    from transformers import AutoTokenizer, MarianMTModel

    found = marian(model, 1)(SENTENCES)
    network, tokenizer = MarianMTModel.from_pretrained(model).eval(), AutoTokenizer.from_pretrained(model)
    for text, translated in zip(SENTENCES, found, strict=True):
        ids = tokenizer(text, return_tensors="pt")
        out = network.generate(ids["input_ids"], attention_mask=ids["attention_mask"], num_beams=1, max_new_tokens=100)
        alone = tokenizer.decode(out[0], skip_special_tokens=True)
        assert alone.startswith(translated)  # the limit on length is the batch's longest
        assert translated
    maker = Translate(there=model, back=model)
    assert len(views(maker, SENTENCES[:3])) == 3
    assert maker.identity() != Translate(there=model, back=model, beams=2).identity()


def test_batches_hold_every_sentence_once():
    lengths = [5, 900, 3, 3000, 7] * 20
    chosen = list(batches(lengths))
    assert sorted(number for batch in chosen for number in batch) == list(range(100))
    assert max(len(batch) * max(lengths[n] for n in batch) for batch in chosen) <= 3000
    assert len(chosen) < 70


def test_a_converted_model(tmp_path, monkeypatch):
    class Translator:
        def __init__(self, path, **options):
            assert path == str(tmp_path)

        def translate_batch(self, tokens, **options):
            return [types.SimpleNamespace(hypotheses=[list(reversed(one[1:-1]))]) for one in tokens]

    monkeypatch.setitem(sys.modules, "ctranslate2", types.SimpleNamespace(Translator=Translator))
    tiny.make_tokenizer("word pieces").save_pretrained(tmp_path)
    (tmp_path / "model.bin").touch()
    translate = marian(str(tmp_path), 1)
    assert translate(translate(["ba da", "fa"])) != ["", ""]
    assert len(translate(SENTENCES)) == len(SENTENCES)


def test_models_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BaseEncoderError, match=f"{tmp_path} cannot be loaded as a translator: "):
        marian(str(tmp_path), 1)
    (tmp_path / "model.bin").touch()
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(BaseEncoderError, match="cannot be loaded as a translator"):
        marian(str(tmp_path), 1)
    assert Translate(pivot="deu")._ways() == [["Helsinki-NLP/opus-mt-en-de"], ["Helsinki-NLP/opus-mt-de-en"]]
