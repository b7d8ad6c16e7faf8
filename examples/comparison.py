"""Which model suits my data? A simple one and a GRU on the same rows, with the same budget, and a report.

python examples/comparison.py
"""

import random
import tempfile

import seqloom

# More steps up than down? A bag of words can count, so it should do well here: a comparison also says when the simple
# model is enough.
draw = random.Random(0)
texts = [" ".join(draw.choices(["up", "down", "stay"], k=9)) for _ in range(600)]
labels = ["higher" if text.count("up") > text.count("down") else "not higher" for text in texts]

if __name__ == "__main__":  # a comparison starts processes of its own, which import this file
    with tempfile.TemporaryDirectory() as folder:
        found = seqloom.compare(
            data=(texts, labels),
            models=["tfidf", "gru"],
            budget="tokens=20k",  # the same for all that are trained
            trials=0,  # settings tried per model before the comparison; a real one tries several
            params="50k",  # the same size for those that have a size
            seeds=2,
            out=f"{folder}/compare",  # choose a folder that stays, to read the report
            jobs=2,  # two runs at a time, each on one of two cores
            quiet=True,
        )
        print(found)
