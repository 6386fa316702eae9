"""The embedder that needs no model: signed hashing of words, word pairs and letter trigrams into buckets."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..errors import BadRequest
from ..types import Role

DEFAULT_DIMENSIONS = 384

# What follows decides every vector: a change of any of it is a new _VERSION, hence another fingerprint.
_VERSION = 1
_STOP_WEIGHT = 0.1
_TRIGRAM_WEIGHT = 1.0
_PAIR_WEIGHT = 0.3
_STOP_WORDS = """
a about after also an and are as at be because been before but by can could did do does for from had has have he her
him his how i if in into is it its me my not of on or our over she so than that the their them then there they this
those to was we were what when where which while who whom whose why will with would you your
"""

# Weights are summed as integers of this unit: integer sums do not depend on their order, so equal bags give equal bits.
_UNIT = float(1 << 20)
_LONGEST_WORD = 64
_BREAK, _LETTER, _LOWER, _UPPER, _ALONE = range(5)
_PLANES = 0x40000
"""Code points from here on (tags, private use) are no letters."""


class HashingEmbedder:
    """Feature hashing (Weinberger et al. 2009): cosines are those of weighted bags, up to the noise of collisions.

    A word counts with the square root of its frequency and its trigrams share one word's weight; function words count
    little. It knows letters and no meaning, so its cosines do not tell aliases.
    Equal on every machine and in every process.
    """

    alias_threshold: float | None = None
    remote = False

    def __init__(self, dimensions: int = DEFAULT_DIMENSIONS) -> None:
        """Raises BadRequest when `dimensions` is not 1 to 65536."""
        if not 1 <= dimensions <= 1 << 16:
            raise BadRequest(
                f"it is not possible to hash into {dimensions} dimensions", hint="Choose 1 to 65536; 384 is usual"
            )
        self.dimensions = dimensions
        self.fingerprint = f"hashing:{_VERSION}:{dimensions}"

    def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        """See Embedder; never raises. A text without a letter or digit has no content."""
        plain = [text if text.isascii() else unicodedata.normalize("NFKC", text) for text in texts]
        ends = np.cumsum([0, *map(len, plain)], dtype=np.int64)
        points = np.frombuffer("".join(plain).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint32)
        points[points >= _PLANES] = 0
        kinds, lower = _alphabet()
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        _embed(points, ends, kinds, lower, _stop_hashes(), vectors)
        return vectors


@cache
def _alphabet() -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """Kind and lower-case form of every code point below _PLANES, each (_PLANES,)."""
    kinds = np.zeros(_PLANES, dtype=np.uint8)
    lower = np.arange(_PLANES, dtype=np.uint32)
    for point in range(0x20000):
        character = chr(point)
        if character.isalnum() or unicodedata.category(character)[0] == "M":
            kinds[point] = _UPPER if character.isupper() else _LOWER if character.islower() else _LETTER
            folded = character.casefold()
            if len(folded) == 1:
                lower[point] = ord(folded)
    # Han and kana are written without blanks: each character is a word, and pairs of them are word pairs.
    for first, last in ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF)):
        block = kinds[first : last + 1]
        block[block != _BREAK] = _ALONE
    kinds[0x20000:] = _ALONE
    return kinds, lower


@cache
def _stop_hashes() -> NDArray[np.uint64]:
    """Hashes of the function words, ascending."""
    words = [np.frombuffer(word.encode("utf-32-le"), dtype="<u4").astype(np.uint32) for word in _STOP_WORDS.split()]
    return np.sort(np.array([_word_hash(word, 0, len(word)) for word in words], dtype=np.uint64))


@compiled
def _mix(x: np.uint64) -> np.uint64:
    """Finaliser of splitmix64 (Steele, Lea, Flood 2014): every bit of `x` moves every bit of the result."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def _word_hash(letters: NDArray[np.uint32], start: int, end: int) -> np.uint64:
    """FNV-1a over code points, then mixed."""
    state = np.uint64(0xCBF29CE484222325)
    for place in range(start, end):
        state = (state ^ np.uint64(letters[place])) * np.uint64(0x100000001B3)
    return _mix(state)


@compiled
def _add(sums: NDArray[np.int64], feature: np.uint64, weight: float) -> None:
    """Adds `weight` to the feature's bucket, with the feature's sign."""
    bucket = ((feature >> np.uint64(32)) * np.uint64(len(sums))) >> np.uint64(32)
    units = np.int64(np.rint(weight * _UNIT))
    sums[bucket] += units if feature & np.uint64(1) else -units


@compiled
def _add_trigrams(sums: NDArray[np.int64], letters: NDArray[np.uint32], start: int, end: int, weight: float) -> None:
    """Adds the trigrams of one word, its two edges counted as characters 1 and 2."""
    share = weight / np.sqrt(float(end - start))
    before, here = np.uint64(1), np.uint64(letters[start])
    for place in range(start + 1, end + 1):
        after = np.uint64(letters[place]) if place < end else np.uint64(2)
        # Code points have 18 bits here; the bit above keeps a trigram apart from a word's hash.
        _add(sums, _mix((before << np.uint64(36)) | (here << np.uint64(18)) | after | np.uint64(1 << 60)), share)
        before, here = here, after


@compiled
def _cut(
    points: NDArray[np.uint32],
    start: int,
    end: int,
    kinds: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> int:
    """Writes the word spans of points[start:end] and returns their number; camel case is cut, as in LiHua."""
    count = 0
    last = _BREAK
    for place in range(start, end):
        kind = kinds[points[place]]
        if kind != _BREAK:
            camel = last == _LOWER and kind == _UPPER
            glued = last != _BREAK and last != _ALONE and kind != _ALONE and not camel
            if glued and place - starts[count - 1] < _LONGEST_WORD:
                ends[count - 1] = place + 1
            else:
                starts[count], ends[count] = place, place + 1
                count += 1
        last = kind
    return count


@compiled
def _embed(
    points: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    lower: NDArray[np.uint32],
    stops: NDArray[np.uint64],
    vectors: NDArray[np.float32],
) -> None:
    """Fills `vectors` (n, d), given as zeros; text i is points[bounds[i]:bounds[i + 1]]."""
    letters = lower[points]
    longest = np.max(np.diff(bounds)) if len(bounds) > 1 else 0
    starts, ends = np.empty(longest, np.int64), np.empty(longest, np.int64)
    words, pairs = np.empty(longest, np.uint64), np.empty(longest, np.uint64)
    weights, pair_weights = np.empty(longest, np.float64), np.empty(longest, np.float64)
    sums = np.empty(vectors.shape[1], np.int64)
    for text in range(len(vectors)):
        sums[:] = 0
        count = _cut(points, bounds[text], bounds[text + 1], kinds, starts, ends)
        for i in range(count):
            words[i] = _word_hash(letters, starts[i], ends[i])
            found = np.searchsorted(stops, words[i])
            weights[i] = _STOP_WEIGHT if found < len(stops) and stops[found] == words[i] else 1.0
            if i > 0:
                pairs[i - 1] = _mix(words[i - 1] * np.uint64(3) + words[i])
                pair_weights[i - 1] = _PAIR_WEIGHT * np.sqrt(weights[i - 1] * weights[i])

        order = np.argsort(words[:count])
        first = 0
        for i in range(1, count + 1):
            if i == count or words[order[i]] != words[order[first]]:
                word = order[first]
                weight = weights[word] * np.sqrt(float(i - first))
                _add(sums, words[word], weight)
                _add_trigrams(sums, letters, starts[word], ends[word], _TRIGRAM_WEIGHT * weight)
                first = i
        order = np.argsort(pairs[: max(count - 1, 0)])
        first = 0
        for i in range(1, count):
            if i == count - 1 or pairs[order[i]] != pairs[order[first]]:
                _add(sums, pairs[order[first]], pair_weights[order[first]] * np.sqrt(float(i - first)))
                first = i

        length = 0.0
        for bucket in range(len(sums)):
            length += float(sums[bucket]) * float(sums[bucket])
        if length > 0.0:
            scale = 1.0 / np.sqrt(length)
            for bucket in range(len(sums)):
                vectors[text, bucket] = np.float32(sums[bucket] * scale)
