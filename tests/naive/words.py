"""Slow, obviously right versions of TF-IDF, BM25 and of sentence vectors from word vectors."""

import math
import re
from collections import Counter


def words_of(text):
    return re.findall(r"\w\w+", text.lower())


def tfidf_cosine(query, text, texts):
    """Counts times ln((1 + n) / (1 + df)) + 1, as scikit-learn weighs them; words that no text has are left out."""
    frequency = Counter(word for each in texts for word in set(words_of(each)))

    def weights(of):
        return {w: c * (math.log((1 + len(texts)) / (1 + frequency[w])) + 1) for w, c in Counter(words_of(of)).items()
                if w in frequency}  # fmt: skip

    a, b = weights(query), weights(text)
    norm = math.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))
    return sum(a[word] * b[word] for word in a.keys() & b.keys()) / norm if norm else 0.0


def count_cosine(query, text, texts):
    """The cosine of how often each word of the texts is in both."""
    known = {word for each in texts for word in words_of(each)}
    a, b = (Counter(word for word in words_of(of) if word in known) for of in (query, text))
    norm = math.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))
    return sum(a[word] * b[word] for word in a) / norm if norm else 0.0


def bm25(query, text, texts, k1=1.5, b=0.75):
    """The sum over the query's words of idf x tf / (tf + k1 (1 - b + b length / mean length)), as Lucene has it."""
    frequency = Counter(word for each in texts for word in set(words_of(each)))
    mean = sum(len(words_of(each)) for each in texts) / len(texts)
    counts, total = Counter(words_of(text)), 0.0
    for word in words_of(query):
        idf = math.log(1 + (len(texts) - frequency[word] + 0.5) / (frequency[word] + 0.5))
        tf = counts[word]
        total += idf * tf / (tf + k1 * (1 - b + b * len(words_of(text)) / mean)) if tf else 0.0
    return total


def sif(texts, vectors, a=1e-3):
    """Weighted means of the words that have vectors, before any direction is taken off (Arora et al., 2017, line 2)."""
    words = [text.split() for text in texts]
    count = Counter(word for line in words for word in line)
    total = sum(count.values())
    found = []
    for line in words:
        known = [word for word in line if word in vectors]
        size = len(next(iter(vectors.values())))
        found.append(
            [sum(a / (a + count[w] / total) * vectors[w][i] for w in known) / max(1, len(known)) for i in range(size)]
        )
    return found


def shared_words(query, text, texts):
    """The cosine of (1 + ln count) x (1 + ln((1 + n) / (1 + df))), words that no text has included."""
    frequency = Counter(word for each in texts for word in set(words_of(each)))

    def weights(of):
        return {
            word: (1 + math.log(count)) * (1 + math.log((1 + len(texts)) / (1 + frequency[word])))
            for word, count in Counter(words_of(of)).items()
        }

    a, b = weights(query), weights(text)
    norm = math.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))
    return sum(a[word] * b[word] for word in a.keys() & b.keys()) / norm if norm else 0.0
