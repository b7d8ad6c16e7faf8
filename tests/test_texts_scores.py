"""Scores of generated texts: those of the packages everyone uses, and the cases one can work out by hand."""

from __future__ import annotations

import math
from itertools import pairwise

import jiwer
import pytest
import sacrebleu
from rouge_score import rouge_scorer

from seqloom.core.errors import UserError
from seqloom.explain.alignments import alignment_error_rate
from seqloom.tasks.translation.forgetting import forgetting
from seqloom.tasks.translation.scores import choose_tokenisation, lead, per_row, score_texts

GIVEN = ["The cat sat on the mat.", "There is a dog in the garden.", "He is Reading a long book today ."]
WANTED = ["The cat sat on the mat.", "A dog is in the garden.", "He is reading a very long book today."]
CHINESE = (["今天天气很好。", "我喜欢看书和音乐。"], ["今天的天气很好。", "我喜欢看书。"])


def test_translation_agrees_with_sacrebleu_and_carries_its_signature():
    scores = score_texts(GIVEN, WANTED, "translation")
    assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(GIVEN, [WANTED]).score)
    assert scores["chrf"] == pytest.approx(sacrebleu.corpus_chrf(GIVEN, [WANTED]).score)
    assert scores["bleu_signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert scores["bleu_signature"] in scores["protocol"] and "case-sensitive" in scores["protocol"]
    assert scores["exact"] == pytest.approx(1 / 3) and scores["count"] == 3


def test_bleu_by_hand():
    # 5 tokens, all right but the last: precisions 4/5, 3/4, 2/3, 1/2 and no penalty for length
    scores = score_texts(["a b c d x"], ["a b c d e"], "translation", "none")
    assert scores["bleu"] == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert score_texts(["a b c d e "], [" a b c d e"])["exact"] == 1


def test_case_counts():
    assert score_texts(["a b c d E"], ["a b c d e"], tokenisation="none")["bleu"] < 100


def test_chinese_is_cut_into_characters():
    scores = score_texts(*CHINESE)
    assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(CHINESE[0], [CHINESE[1]], tokenize="zh").score)
    assert "tok:zh" in scores["bleu_signature"] and "tokens: zh" in scores["protocol"]
    assert score_texts(*CHINESE, tokenisation="13a")["bleu"] < scores["bleu"]
    texts = {"13a": "Das Wetter: 好, 42", "zh": "他用 iPhone 打电话给我们", "char": "きょうは天気がいいです。"}
    assert all(choose_tokenisation([text]) == chosen for chosen, text in texts.items())


def test_rows_may_have_different_numbers_of_references():
    several = [[WANTED[0]], ["There is a dog in the park.", WANTED[1]], [WANTED[2]]]
    streams = [[row[0] for row in several], [None, WANTED[1], None]]
    scores = score_texts(GIVEN, several)
    assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(GIVEN, streams).score)
    assert scores["chrf"] == pytest.approx(sacrebleu.corpus_chrf(GIVEN, streams).score)
    assert "nrefs:var" in scores["bleu_signature"]
    short = score_texts(["a b c d"], ["a b c d e f g h"], tokenisation="none")["bleu"]
    beside = score_texts(["a b c d", "x"], [["a b c d e f g h"], ["x", "y"]], tokenisation="none")["bleu"]
    assert short == pytest.approx(100 * math.exp(1 - 8 / 4))  # too short
    assert beside == pytest.approx(100 * math.exp(1 - 9 / 5))  # the missing reference has no length to come near to
    assert score_texts(["y"], [["x", "y"]])["exact"] == 1


def test_pieces_of_bleu_are_what_leaving_out_each_block_of_rows_says():
    texts = [f"{GIVEN[n % 3]} {'so it is' * (n % 4)} {n}" for n in range(40)]
    wanted = [f"{WANTED[n % 3]} {'so it was' * (n % 3)} {n}" for n in range(40)]
    scores = score_texts(texts, wanted)
    pieces = scores["score_pieces"]["bleu"]
    for n, piece in enumerate(pieces):
        kept = [k for k in range(40) if k // 4 != n]
        without = sacrebleu.corpus_bleu([texts[k] for k in kept], [[wanted[k] for k in kept]]).score
        assert piece == pytest.approx(10 * scores["bleu"] - 9 * without)
    assert len(pieces) == 10 and sum(pieces) / 10 == pytest.approx(scores["bleu"], abs=0.3)


def test_pieces_of_bleu_with_several_references_and_chinese_are_counted_as_in_the_whole():
    several = [[WANTED[0]], ["There is a dog in the park.", WANTED[1]], [WANTED[2]]]
    for given, wanted in ((GIVEN, several), CHINESE):
        scores = score_texts(given, wanted)
        without = [score_texts(given[:n] + given[n + 1 :], wanted[:n] + wanted[n + 1 :], tokenisation=tokens)["bleu"]
                   for tokens in [choose_tokenisation([wanted[0] if isinstance(wanted[0], str) else wanted[0][0]])]
                   for n in range(len(given))]  # fmt: skip
        count = len(given)
        whole = [count * scores["bleu"] - (count - 1) * other for other in without]
        assert scores["score_pieces"]["bleu"] == pytest.approx(whole)


def test_pieces_of_a_mean_are_the_means_of_its_blocks_and_one_row_is_one_piece():
    scores = score_texts(GIVEN * 10, WANTED * 10, "summary")
    blocks = [score_texts(GIVEN, WANTED, "summary")["rougeL"]] * 10
    assert scores["score_pieces"]["rougeL"] == pytest.approx(blocks)
    rates = score_texts(GIVEN * 10, WANTED * 10, "transcription")
    assert rates["score_pieces"]["error_rate"] == pytest.approx([rates["error_rate"]] * 10)
    assert score_texts(["a b"], ["a c"])["score_pieces"]["bleu"] == [score_texts(["a b"], ["a c"])["bleu"]]


def test_summary_agrees_with_rouge_score_on_english():
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"])
    scores = score_texts(GIVEN, WANTED, "summary")
    for name in ("rouge1", "rouge2", "rougeL"):
        wanted = [scorer.score(reference, text)[name].fmeasure for text, reference in zip(GIVEN, WANTED, strict=True)]
        assert scores[name] == pytest.approx(100 * sum(wanted) / 3)
    assert "no stemming" in scores["protocol"]


def test_rouge_by_hand():
    scores = score_texts(["the cat"], ["The cat sat."], "summary")  # 2 of 2 given, 2 of 3 wanted
    assert scores["rouge1"] == pytest.approx(80) and scores["rougeL"] == pytest.approx(80)
    assert scores["rouge2"] == pytest.approx(100 * 2 * 1 * 0.5 / 1.5)
    chinese = score_texts(["天气好"], ["天气很好"], "summary")  # 3 of 3 given, 3 of 4 wanted, by character
    assert chinese["rouge1"] == pytest.approx(100 * 2 * 3 / 7)
    assert score_texts(["größer"], ["Größer!"], "summary")["rouge1"] == 100  # letters that rouge-score would drop
    assert score_texts(["a"], [["b", "a"]], "summary")["rouge1"] == 100


def test_error_rate_by_hand_and_by_jiwer():
    given, wanted = ["HH AH0 L OW1", "K AE1", "D AO1 G Z"], ["HH AH0 L OW1", "K AE1 T", "D AO1 G"]
    scores = score_texts(given, wanted, "transcription")
    assert scores["error_rate"] == pytest.approx(100 * 2 / 10) == pytest.approx(100 * jiwer.wer(wanted, given))
    assert scores["exact"] == pytest.approx(1 / 3) and "jiwer" in scores["protocol"]
    assert score_texts(["a b c x y"], ["a q c"], "transcription")["error_rate"] == pytest.approx(100)
    assert score_texts([""], ["a b"], "transcription")["error_rate"] == 100


def test_the_nearest_reference_counts_for_the_error_rate():
    scores = score_texts(["R IY1 D", "x"], [["R EH1 D", "R IY1 D"], ["x y", "x y z"]], "transcription")
    assert scores["error_rate"] == pytest.approx(100 * 1 / 5) and scores["exact"] == 0.5
    tied = score_texts(["a b"], [["a c", "a b c"]], "transcription")  # one edit from either
    assert tied["error_rate"] == pytest.approx(100 / 3)


def test_each_row_has_its_own_score():
    assert per_row(GIVEN, WANTED) == pytest.approx(
        [sacrebleu.sentence_chrf(text, [wanted]).score for text, wanted in zip(GIVEN, WANTED, strict=True)]
    )
    assert per_row(["the cat", "a"], ["the cat sat", "b"], "summary") == pytest.approx([80, 0])
    assert per_row(["a b", "x y z", "a"], ["a c", "x", ["b", "a"]], "transcription") == pytest.approx([50, -100, 100])


@pytest.mark.parametrize("arguments, message", [
    (("translaton", "auto"), "unknown metric 'translaton'; did you mean 'translation'"),
    (("translation", "zh2"), "unknown tokenisation 'zh2'; did you mean 'zh'"),
])  # fmt: skip
def test_a_wrong_name_is_explained(arguments, message):
    with pytest.raises(UserError, match=message):
        score_texts(["a"], ["a"], *arguments)


@pytest.mark.parametrize("predictions, references", [(["a"], []), ([], []), (["a"], [[]]), (["a"], [" "])])
def test_rows_without_a_reference_are_no_rows(predictions, references):
    with pytest.raises(ValueError):
        score_texts(predictions, references)


def test_accuracy_by_step_and_by_length():
    found = forgetting(["a b", "c d e"], ["x b", "e d"], ["b b", "e d c"])
    assert found["by_step"] == [
        {"from": 1, "to": 1, "accuracy": 0.5, "count": 2},
        {"from": 2, "to": 2, "accuracy": 1.0, "count": 2},
        {"from": 3, "to": 3, "accuracy": 0.0, "count": 1},  # missing is wrong
    ]
    assert [(bin["from"], bin["to"], bin["count"]) for bin in found["by_length"]] == [(2, 2, 2), (3, 3, 3)]
    assert [bin["accuracy"] for bin in found["by_length"]] == pytest.approx([1 / 2, 2 / 3])


def test_there_are_at_most_ten_bins_and_they_hold_every_token():
    texts = [" ".join("abcdefghij" * 5)[: 2 * n] for n in range(7, 44)]
    found = forgetting(texts, texts, texts)
    tokens = sum(len(text.split()) for text in texts)
    for bins in found.values():
        assert len(bins) <= 10 and sum(bin["count"] for bin in bins) == tokens
        assert all(bin["accuracy"] == 1 for bin in bins)
        assert all(before["to"] < after["from"] for before, after in pairwise(bins))
    assert found["by_length"][0]["from"] == 7 and found["by_length"][-1]["to"] == 43


def test_texts_without_blanks_are_compared_by_character_with_the_reference_that_agrees_most():
    found = forgetting(["read"], ["天气很"], [["气天", "天气好"]])
    assert [bin["accuracy"] for bin in found["by_step"]] == [1, 1, 0]
    assert found["by_length"] == [{"from": 4, "to": 4, "accuracy": pytest.approx(2 / 3), "count": 3}]


def test_alignment_error_rate_by_hand():
    sure, possible = {(0, 0), (1, 1)}, {(1, 2)}
    assert alignment_error_rate(sure, sure) == 0
    assert alignment_error_rate({(0, 0), (1, 2)}, sure, possible) == pytest.approx(1 - (1 + 2) / 4)
    assert alignment_error_rate({(5, 5)}, sure, possible) == 1
    assert alignment_error_rate(set(), set()) == 0


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Ann: hi\nBob: hello\n\nAnn: how are you?\nBob: fine", "Ann: hi Bob: hello Ann: how are you?"),
        ("One. Two! Three? Four.", "One. Two! Three?"),
        ("一。二！三？四。", "一。二！三？"),
        ('He said "no." Then he left. So did I. The end', 'He said "no." Then he left. So did I.'),
        ("no end at all", "no end at all"),
        ("", ""),
    ],
)
def test_the_lead_is_the_first_lines_or_the_first_sentences(text: str, wanted: str) -> None:
    assert lead(text, 3) == wanted
