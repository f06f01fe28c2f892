import pytest

from selfsent.errors import OutputError
from selfsent.evaluation.side_by_side import Spread
from selfsent.papers.analysis import Space, WordImportance
from selfsent.papers.plots import check_plots, draw, plot_corpus_size, plot_space, plot_words

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

WORDS = WordImportance({"NOUN": 0.75, "VERB": 0.25}, {"NOUN": 0.5, "VERB": 0.25, "DET": 0.25}, 8)


def drawn(plot, *found):
    """The axes that a plot is drawn on."""
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    plot(axes, *found)
    return axes


def texts(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_words_have_a_bar_for_each_model_and_kind():
    axes = drawn(plot_words, {"a": WORDS, "b": WORDS})
    assert [[bar.get_width() for bar in bars] for bars in axes.containers] == [[50, 25, 25]] + [[75, 25, 0]] * 2
    assert [label.get_text() for label in axes.get_yticklabels()] == ["nouns", "verbs", "determiners"]
    assert texts(axes) == ["a", "b", "share of all words"]
    assert [text.get_text() for text in axes.texts] == ["75", "25", ""] * 2


def test_sizes_are_named_as_far_as_their_names_fit():
    curve = {size: Spread(size / 10, 1.0, 2) for size in (100, 1000, 9000, 10_000)}
    axes = drawn(plot_corpus_size, curve, "stsb")
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["100", "1,000", "9,000"]
    assert axes.get_ylabel() == "stsb"


def test_space_has_a_point_for_each_model():
    axes = drawn(plot_space, [Space("a", 0.2, -2.0), Space("b", 0.4, -3.0)])
    assert [points.get_offsets().tolist() for points in axes.collections] == [[[-2.0, 0.2]], [[-3.0, 0.4]]]
    assert texts(axes) == ["a", "b"]


def test_the_same_data_gives_the_same_file(tmp_path):
    for name in ("x", "y"):
        files = [tmp_path / f"{name}.{kind}" for kind in ("png", "svg")]
        draw(lambda axes: plot_space(axes, [Space("cost $5 to $6", 0.2, -2.0)]), files)
    for kind in ("png", "svg"):
        assert (tmp_path / f"x.{kind}").read_bytes() == (tmp_path / f"y.{kind}").read_bytes()
    assert "cost $5 to $6" in (tmp_path / "x.svg").read_text()
    assert len(list(tmp_path.iterdir())) == 4


def test_other_formats_are_refused():
    with pytest.raises(OutputError, match=r"must end in \.png or \.svg"):
        check_plots(["x.svg", "x.pdf"])
