"""From English to French with a grammar of one rule: the colour moves behind the noun.

python examples/translation.py
"""

import itertools
import tempfile

import seqloom

NOUNS = {"car": "voiture", "house": "maison", "table": "table", "door": "porte", "flower": "fleur", "chair": "chaise"}
COLOURS = {"red": "rouge", "yellow": "jaune", "pink": "rose", "orange": "orange", "beige": "beige", "brown": "marron"}
VERBS = {"sees": "voit", "hides": "cache", "likes": "aime", "sells": "vend"}
NAMES = ["Ada", "Ben", "Eve", "Max"]

pairs = [
    (f"{name} {verb} the {colour} {noun}", f"{name} {VERBS[verb]} la {NOUNS[noun]} {COLOURS[colour]}")
    for name, verb, colour, noun in itertools.product(NAMES, VERBS, COLOURS, NOUNS)
]
# Every seventh sentence is never seen in training.
test = pairs[::7]
train = [pair for pair in pairs if pair not in test]

with tempfile.TemporaryDirectory() as folder:
    settings = {"data": train, "test": test, "task": "translation", "quiet": True}
    words = {"tokenizer": {"kind": "words"}}
    nearest = seqloom.fit(**settings, model="nearest", out=f"{folder}/nearest")  # copies the most similar example
    model = {"name": "seq2seq", "width": 64}
    seq2seq = seqloom.fit(**settings, **words, model=model, train={"steps": 200}, out=f"{folder}/seq2seq")

    for name, run in (("nearest example", nearest), ("seq2seq with attention", seq2seq)):
        found = [row["prediction"] for row in run.predict([source for source, _ in test])]
        right = sum(prediction == target for prediction, (_, target) in zip(found, test, strict=True))
        print(f"{name}: {right} of {len(test)} new sentences right; {test[3][0]!r} becomes {found[3]!r}")
