from selfsent.augment.augmenter import with_capitals_of


def test_a_word_takes_the_capitals_of_another():
    pairs = "Street Road, STREET ROAD, street road", "İnek İnek, İNEK İNEK", "Işık Işık", "İNCİ ÇİLEK", "ILIK ILIK"
    for word, found in zip(("road", "inek", "ışık", "çilek", "ılık"), pairs, strict=True):
        for pattern, expected in (pair.split() for pair in found.split(", ")):
            assert with_capitals_of(word, pattern) == expected
