"""Questions about short notes: the answer is a stretch of the text, found by a small BERT trained from scratch.

python examples/question_answering.py
"""

import random
import tempfile

import seqloom

draw = random.Random(0)
PEOPLE = ["Ada", "Ben", "Eve", "Max", "Ida", "Tom"]
CITIES = ["Paris", "Rome", "Oslo", "Cairo", "Lima", "Delhi"]
THINGS = ["a violin", "a bicycle", "an old map", "a red lamp", "a camera"]


def asked() -> dict[str, object]:
    """A note, a question and its answer with the place where it begins."""
    person, city, thing, year = draw.choice(PEOPLE), draw.choice(CITIES), draw.choice(THINGS), draw.randint(1950, 2020)
    note = draw.choice(["In {year} {person} bought {thing} in {city}.", "{person} found {thing} in {city} in {year}."])
    question, answer = draw.choice(
        [("Who was it?", person), ("Where was it?", city), ("What was it?", thing), ("When was it?", str(year))]
    )
    context = note.format(person=person, city=city, thing=thing, year=year)
    return {"context": context, "question": question, "answer": answer, "answer_start": context.index(answer)}


train, test = [asked() for _ in range(500)], [asked() for _ in range(60)]

with tempfile.TemporaryDirectory() as folder:
    model = {"name": "bert", "width": 48, "depth": 2, "heads": 4}
    run = seqloom.fit(data=train, test=test, task="question_answering", model=model, train={"steps": 160},
                      out=f"{folder}/run", quiet=True)  # fmt: skip
    scores = run.summary["scores"]["test"]
    print(f"BERT: {scores['exact']:.0%} of the answers exact, F1 {scores['f1']:.2f}")
    for name, found in scores["baselines"].items():
        print(f"{name} as the answer: {found['exact']:.0%} exact, F1 {found['f1']:.2f}")
    for row, found in zip(test[:3], run.predict(test[:3]), strict=True):
        print(f"  {row['context']} {row['question']} {found['answer']!r}")
