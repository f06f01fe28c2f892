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


def bm25_share(query, text, texts, k1=1.2, b=0.75):
    """The sum over the query's terms of idf x tf / (tf + k1 (1 - b + b length / mean length)), over the sum of idf."""
    frequency = Counter(term for each in texts for term in set(each))
    mean = sum(map(len, texts)) / len(texts)
    counts, total, bound = Counter(text), 0.0, 0.0
    for term in query:
        idf = math.log(1 + (len(texts) - frequency[term] + 0.5) / (frequency[term] + 0.5))
        tf, bound = counts[term], bound + idf
        total += idf * tf / (tf + k1 * (1 - b + b * len(text) / mean)) if tf else 0.0
    return total / bound if bound else 0.0


def shared_words(query, text, texts, terms_of=words_of):
    """The cosine of (1 + ln count) x (1 + ln((1 + n) / (1 + df))), terms that no text has included."""
    frequency = Counter(term for each in texts for term in set(terms_of(each)))

    def weights(of):
        return {
            term: (1 + math.log(count)) * (1 + math.log((1 + len(texts)) / (1 + frequency[term])))
            for term, count in Counter(terms_of(of)).items()
        }

    a, b = weights(query), weights(text)
    norm = math.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))
    return sum(a[word] * b[word] for word in a.keys() & b.keys()) / norm if norm else 0.0
