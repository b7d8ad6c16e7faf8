"""Where order decides, a bag of words is lost: which came first in a log, the request or the alarm?

python examples/classification.py
"""

import random

from seqloom import SequenceClassifier

# Every log is eight events; exactly one is a request and one an alarm. Its label says which came first.
draw = random.Random(0)
OTHERS = ["start", "stop", "read", "write", "sleep", "wake"]


def log() -> tuple[str, str]:
    events = draw.choices(OTHERS, k=8)
    first, second = sorted(draw.sample(range(8), 2))
    winner = draw.choice(["request", "alarm"])
    events[first], events[second] = winner, "alarm" if winner == "request" else "request"
    return " ".join(events), winner


texts, labels = zip(*(log() for _ in range(1100)), strict=True)
train, test = (texts[:1000], labels[:1000]), (texts[1000:], labels[1000:])

# The estimators follow scikit-learn: fit, predict, score.
bag = SequenceClassifier({"name": "tfidf", "order": 1}).fit(*train)  # single events, however they are ordered
gru = SequenceClassifier({"name": "gru", "width": 32}, train={"steps": 500}, random_state=0).fit(*train)

print(f"bag of events: {bag.score(*test):.0%} of {len(test[0])} new logs right")
print(f"GRU, which reads them in order: {gru.score(*test):.0%}")

for text in test[0][:3]:
    (shares,) = gru.predict_proba([text])
    shown = ", ".join(f"{name} {share:.2f}" for name, share in zip(gru.classes_, shares, strict=True))
    print(f"  {text}: {shown}")
