"""A language model that only counts: train an n-gram on Python's help texts, look at its scores, let it write.

python examples/language_model.py
"""

import tempfile

import seqloom

with tempfile.TemporaryDirectory() as folder:  # leave `out` away to keep the run under runs/
    # Any text will do: a path, a list of texts in memory, or, as here, a sample that needs no download.
    run = seqloom.fit(data="sample:python-docs", model={"name": "ngram", "order": 6}, out=f"{folder}/run", quiet=True)

    # Printing a run shows its scores beside baselines: uniform guesses over all characters, and characters by their
    # frequency alone. Bits per byte: how well the text could be compressed; lower is better.
    print(run)

    scores = run.summary["scores"]["valid"]
    unigram = scores["baselines"]["unigram"]["bits_per_byte"]
    print(f"\n{scores['bits_per_byte']:.2f} bits per byte, against {unigram:.2f} without any context.")
    print("It continues 'The class ' like this:\n")
    print("The class " + run.generate("The class ", max_new=200, temperature=0.7, seed=1))
