"""One word, two tags: 'the play' is a noun, 'they play' a verb. A tagger that reads the neighbours can tell.

python examples/tagging.py
"""

import random

from seqloom import SequenceTagger

draw = random.Random(0)
BOTH = ["play", "walk", "look", "rest", "drive", "call", "answer", "show"]  # nouns and verbs


def sentence() -> tuple[list[str], list[str]]:
    """`the long walk`, `they often walk`, in any order and number."""
    words, tags = [], []
    for _ in range(draw.randint(2, 3)):
        if draw.random() < 0.5:
            words += [draw.choice(["the", "a", "this"]), draw.choice(["long", "good", "short"]), draw.choice(BOTH)]
            tags += ["DET", "ADJ", "NOUN"]
        else:
            words += [draw.choice(["they", "we", "you"]), draw.choice(["often", "never", "now"]), draw.choice(BOTH)]
            tags += ["PRON", "ADV", "VERB"]
    return words, tags


words, tags = map(list, zip(*(sentence() for _ in range(400)), strict=True))
train, test = (words[:300], tags[:300]), (words[300:], tags[300:])

frequent = SequenceTagger("frequent").fit(*train)  # the most frequent tag of each word: the baseline
gru = SequenceTagger({"name": "gru", "width": 32}, train={"steps": 80}, random_state=0).fit(*train)

print(f"most frequent tag of each word: {frequent.score(*test):.0%} of the words right")
print(f"GRU, which has read the words before: {gru.score(*test):.0%}")
example = ["they", "often", "walk", "the", "long", "walk"]
print(" ".join(f"{word}/{tag}" for word, tag in zip(example, gru.predict([example])[0], strict=True)))
