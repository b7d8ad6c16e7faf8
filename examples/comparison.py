"""Which model suits my data? Three of them on the same rows, with the same budget, and a report.

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
            models=["tfidf", "bag", "gru"],
            budget="tokens=40k",  # the same for all that are trained
            trials=0,  # settings tried per model before the comparison; a real one tries several
            params="100k",  # the same size for those that have a size
            seeds=2,
            out=f"{folder}/compare",  # choose a folder that stays, to read the report
            quiet=True,
        )
        print(found)
