"""Encodings and layouts of data files: recognised, read as declared, or refused with advice that works."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

import seqloom
from seqloom.core.errors import UserError
from seqloom.data import files, refusals
from seqloom.data.encodings import recognise
from seqloom.data.files import declare, read_lines, read_text
from seqloom.data.rows import READERS
from seqloom.data.shapes import find_shape
from seqloom.data.shapes.labelled.reading import open_labelled
from seqloom.data.shapes.tagged.reading import open_tagged
from seqloom.data.text import open_text
from seqloom.runs.configure import configure
from seqloom.runs.doctor import doctor
from seqloom.runs.guess import guess_task
from seqloom.runs.material import Material
from seqloom.runs.settings import RunConfig

CHINESE = ["房间很大，服务也好", "早餐太少，等了很久", "下次还会再来，推荐", "价格不便宜，质量一般"]
TRADITIONAL = ["房間很大，服務也好", "早餐太少，等了很久", "下次還會再來，推薦", "價格不便宜，品質一般"]
JAPANESE = [
    "部屋が広くて、とても良かったです",
    "朝食が少なくて残念でした",
    "また来たいと思います",
    "値段のわりに普通です",
]
KOREAN = [
    "방이 넓고 서비스도 좋았습니다",
    "아침 식사가 너무 적었어요",
    "다음에 다시 오고 싶어요",
    "가격에 비해 보통입니다",
]
FRENCH = [
    "La chambre était très grande",
    "Le petit déjeuner a été servi froid",
    "À recommander même en été",
    "Café médiocre",
]
CURLY = ["It’s a “great” room", "Breakfast wasn’t warm…", "We’ll be back – soon", "Price: 80 € a night"]
RARE = ["€𠀀" + text for text in CHINESE]  # not in GBK


@pytest.fixture(autouse=True)
def nothing_declared(monkeypatch):
    monkeypatch.setattr(files, "_declared", {})


def csv(texts: list[str], between: str = ",", end: str = "\n") -> str:
    labels = list("abab") * (len(texts) // 4)
    return end.join(between.join(row) for row in [("text", "label"), *zip(texts, labels, strict=True)]) + end


def quoted(texts: list[str], end: str = "\n") -> str:
    return (
        end.join(["text,label", *(f'"{text},{end}{text}",{label}' for text, label in zip(texts, "abab", strict=True))])
        + end
    )


def jsonl(texts: list[str]) -> str:
    return "".join(f'{{"text": "{text}", "label": "{label}"}}\n' for text, label in zip(texts, "abab", strict=True))


def rows_of(path: Path) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(row.texts, row.labels) for row in open_labelled(str(path)).rows()]


# name: file, content, its encoding, the encoding that the advice names (None: read as it is), the same in UTF-8
TABLES = {
    "utf-8": ("a.csv", csv(CHINESE), "utf-8", None, csv(CHINESE)),
    "utf-8 with a mark": ("a.csv", csv(CHINESE), "utf-8-sig", None, csv(CHINESE)),
    "utf-16": ("a.csv", csv(CHINESE), "utf-16", None, csv(CHINESE)),
    "utf-16 big-endian": ("a.csv", "\ufeff" + csv(CHINESE), "utf-16-be", None, csv(CHINESE)),
    "utf-32": ("a.csv", csv(CHINESE), "utf-32", None, csv(CHINESE)),
    "utf-32 big-endian": ("a.csv", "\ufeff" + csv(CHINESE), "utf-32-be", None, csv(CHINESE)),
    "utf-16 without a mark": ("a.csv", csv(CHINESE), "utf-16-le", "utf-16le", csv(CHINESE)),
    "utf-16 big-endian without a mark": ("a.csv", csv(FRENCH), "utf-16-be", "utf-16be", csv(FRENCH)),
    "gbk": ("a.csv", csv(CHINESE), "gbk", "gb18030", csv(CHINESE)),
    "gb18030": ("a.csv", csv(RARE), "gb18030", "gb18030", csv(RARE)),
    "big5": ("a.csv", csv(TRADITIONAL), "big5", "big5", csv(TRADITIONAL)),
    "shift-jis": ("a.csv", csv(JAPANESE), "shift_jis", "cp932", csv(JAPANESE)),
    "euc-jp": ("a.csv", csv(JAPANESE), "euc_jp", "euc-jp", csv(JAPANESE)),
    "euc-kr": ("a.csv", csv(KOREAN), "euc_kr", "cp949", csv(KOREAN)),
    "latin-1": ("a.csv", csv(FRENCH), "latin1", "latin1", csv(FRENCH)),
    "windows-1252": ("a.csv", csv(CURLY), "cp1252", "windows-1252", csv(CURLY)),
    "gbk, tabs": ("a.tsv", csv(CHINESE, "\t"), "gbk", "gb18030", csv(CHINESE)),
    "utf-16, tabs in .csv, as of Excel": ("a.csv", csv(CHINESE, "\t", "\r\n"), "utf-16", None, csv(CHINESE)),
    "utf-16, tabs": ("a.tsv", csv(CHINESE, "\t"), "utf-16", None, csv(CHINESE)),
    "gbk, semicolons": ("a.csv", csv(CHINESE, ";"), "gbk", "gb18030", csv(CHINESE)),
    "latin-1, semicolons": ("a.csv", csv(FRENCH, ";", "\r\n"), "latin1", "latin1", csv(FRENCH)),
    "big5 jsonl": ("a.jsonl", jsonl(TRADITIONAL), "big5", "big5", jsonl(TRADITIONAL)),
    "utf-16 jsonl": ("a.jsonl", jsonl(FRENCH), "utf-16", None, jsonl(FRENCH)),
    "shift-jis jsonl": ("a.jsonl", jsonl(JAPANESE), "shift_jis", "cp932", jsonl(JAPANESE)),
    "semicolons": ("a.csv", csv(FRENCH, ";"), "utf-8", None, csv(FRENCH)),
    "tabs": ("a.tsv", csv(FRENCH, "\t"), "utf-8", None, csv(FRENCH)),
    "tabs in .csv": ("a.csv", csv(FRENCH, "\t"), "utf-8", None, csv(FRENCH)),
    "windows line ends": ("a.csv", csv(FRENCH, end="\r\n"), "utf-8", None, csv(FRENCH)),
    "old mac line ends": ("a.csv", csv(FRENCH, end="\r"), "utf-8", None, csv(FRENCH)),
    "old mac line ends, gbk": ("a.csv", csv(CHINESE, end="\r"), "gbk", "gb18030", csv(CHINESE)),
    "old mac line ends, tabs": ("a.tsv", csv(FRENCH, "\t", "\r"), "utf-8", None, csv(FRENCH)),
    "old mac line ends, jsonl": ("a.jsonl", jsonl(FRENCH).replace("\n", "\r"), "utf-8", None, jsonl(FRENCH)),
    "quoted line ends": ("a.csv", quoted(CHINESE), "gbk", "gb18030", quoted(CHINESE)),
    "quoted windows line ends": ("a.csv", quoted(CHINESE, "\r\n"), "utf-16", None, quoted(CHINESE)),
    "quoted old mac line ends": ("a.csv", quoted(FRENCH, "\r"), "utf-8", None, quoted(FRENCH)),
    "a quoted carriage return": ("a.csv", quoted(FRENCH).replace(",\n", ",\r"), "utf-8", None, quoted(FRENCH)),
    "empty lines at the end": ("a.csv", csv(FRENCH) + "\n\r\n\n", "utf-8", None, csv(FRENCH)),
    "empty lines at the end, old mac": ("a.csv", csv(FRENCH, end="\r") + "\r\r", "utf-8", None, csv(FRENCH)),
    "no line end at the end": ("a.csv", csv(CHINESE).rstrip("\n"), "gbk", "gb18030", csv(CHINESE)),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_a_table_is_read_like_its_utf8_twin_or_after_following_the_advice(tmp_path, case):
    name, content, encoding, advised, twin = TABLES[case]
    path, same = tmp_path / name, tmp_path / f"same{Path(name).suffix if name.endswith('l') else '.csv'}"
    path.write_bytes(content.encode(encoding))
    same.write_bytes(twin.encode())
    if advised:
        with pytest.raises(UserError) as error:
            rows_of(path)
        assert f"add --encoding {advised}, or convert it: iconv -f {advised} -t utf-8 {path} > utf8" in str(error.value)
        assert "\n" not in str(error.value)
        declare(str(path), advised)
    expected = rows_of(same)
    assert rows_of(path) == expected and len(expected) == 4
    assert open_labelled(str(path)).hash == open_labelled(str(same)).hash
    assert guess_task(str(path)) == guess_task(str(same))


PLAIN = {"utf-16": None, "utf-32": None, "gbk": "gb18030", "utf-16-le": "utf-16le"}


@pytest.mark.parametrize("encoding", PLAIN)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_plain_text_is_the_same_source_in_any_encoding(tmp_path, encoding, end):
    text, advised = end.join(CHINESE * 9) + end, PLAIN[encoding]
    path, same = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_bytes(text.encode(encoding))
    same.write_bytes(text.encode())
    declare(str(path), advised)
    one, two = open_text(str(path)), open_text(str(same))
    assert "".join(one.pieces()) == "".join(two.pieces()) == text.replace(end, "\n")
    assert one.bytes == two.bytes and one.hash == two.hash  # so they share their tokens, too


def test_conll_catalogues_and_questions_are_read_in_a_declared_encoding(tmp_path):
    from seqloom.data.shapes.pairs.reading import open_pairs
    from seqloom.data.shapes.questions.reading import open_questions

    conll, catalogue, squad = tmp_path / "a.conll", tmp_path / "a.po", tmp_path / "a.json"
    conll.write_bytes("张 B-PER\n三 I-PER\n来 O\n\n北 B-LOC\n京 I-LOC\n".encode("gbk"))
    catalogue.write_bytes('msgid "Open"\nmsgstr "打开"\n'.encode("gbk"))
    question = '{"question": "谁来了?", "answers": [{"text": "张三", "answer_start": 0}]}'
    squad.write_bytes(
        f'{{"data": [{{"paragraphs": [{{"context": "张三来了", "qas": [{question}]}}]}}]}}'.encode("utf-16")
    )
    for path in (conll, catalogue):
        declare(str(path), "GBK")
    assert [row.words for row in open_tagged(str(conll)).rows()] == [["张", "三", "来"], ["北", "京"]]
    assert [row[1:] for row in open_pairs(str(catalogue)).rows()] == [("Open", "打开")]
    assert [row.context for row in open_questions(str(squad)).rows()] == ["张三来了"]


def test_a_folder_and_two_parallel_files_are_declared_together(tmp_path):
    from seqloom.data.shapes.pairs.reading import open_pairs

    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_bytes("\n".join(CHINESE).encode("gbk"))
    (folder / "b.txt").write_bytes("\n".join(CHINESE).encode())  # clearly UTF-8
    (folder / "c.txt").write_bytes("\n".join(CHINESE).encode("utf-16"))
    (folder / "image.png").write_bytes(b"\x89PNG\0\0\0\1")
    declare(str(folder), "gbk")
    assert "".join(open_text(str(folder)).pieces()) == "\n".join(CHINESE) * 3
    (tmp_path / "a.fr").write_bytes("\n".join(FRENCH).encode("latin1"))
    (tmp_path / "a.en").write_bytes("\n".join(CURLY).encode("cp1252"))
    both = f"{tmp_path}/a.fr,{tmp_path}/a.en"
    declare(both, "windows-1252")
    assert [row[1:] for row in open_pairs(both).rows()] == list(zip(FRENCH, CURLY, strict=True))


def zipped(*names: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(name, "content")
    return packed.getvalue()


EXCEL = zipped("[Content_Types].xml", "xl/workbook.xml")
ASCII = csv(["plain"] * 4).encode()
REFUSED = {
    "excel": ("a.csv", EXCEL, "a.csv: an Excel workbook, not text: save it as CSV (UTF-8)"),
    "excel as it is": ("a.xlsx", EXCEL, "a.xlsx: an Excel workbook"),
    "word": ("a.txt", zipped("word/document.xml"), "a.txt: a Word document, not text: save it as plain text (UTF-8)"),
    "zip": ("a.csv", zipped("data.csv"), "a.csv: a zip archive, not text: unpack it first"),
    "old excel": ("a.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "a.csv: an older Excel workbook"),
    "gzip": ("a.csv", b"\x1f\x8b\x08\0\0\0", "a.csv: compressed with gzip, not text: rename it"),
    "binary": ("a.csv", bytes(range(256)), "a.csv: a binary file (NUL byte at offset 0)"),
    "pipes": (
        "a.csv",
        csv(FRENCH, "|").encode(),
        "a.csv:1: vertical bars separate its cells; use commas, semicolons or",
    ),
    "pipes in .tsv": ("a.tsv", csv(FRENCH, "|").encode(), "a.tsv:1: vertical bars separate its cells, not tabs"),
    "commas in .tsv": (
        "a.tsv",
        csv(CURLY).encode(),
        "a.tsv:1: commas separate its cells, not tabs; rename it to a.csv",
    ),
    "a carriage return in a cell": ("a.csv", b"text,label\na\rb,1\n", "a.csv:2: not valid CSV: a carriage return"),
    "damaged": (
        "a.csv",
        csv(CHINESE).encode() + b"\xff\xfe,a\n",
        "a.csv:6: not UTF-8 (byte 0xff at column 1); the rest",
    ),
    "unclear": ("a.csv", b"text,label\n\xff,1\n", "a.csv:2: not UTF-8 (byte 0xff at column 1); its encoding is not"),
    "an old mac's line": ("a.csv", b"text,label\rok,1\rsch\xf6n,0\r", "a.csv:3: not UTF-8; it looks like Latin-1"),
    "far line": (
        "a.csv",
        ASCII * 50 + csv(CHINESE).encode("gbk"),
        "a.csv:252: not UTF-8; it looks like GB18030 (Chinese)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_a_text_table_is_refused_with_advice(tmp_path, case):
    name, content, message = REFUSED[case]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        list(open_labelled(str(path)).rows()) if path.suffix in READERS else list(open_text(str(path)).pieces())
    assert str(error.value).startswith(str(tmp_path)) and message in str(error.value)
    assert "\n" not in str(error.value)
    (finding,) = [f for f in doctor(str(path), task="classification") if f.level == "error"]
    assert message.partition(":")[2] in finding.message or path.suffix not in READERS


def test_a_pipe_separated_file_is_read_after_following_the_advice(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text(csv(FRENCH, "|").replace("|", "\t"))  # what `tr` does
    assert len(rows_of(path)) == 4


SENTENCES = {
    "gb18030": ["周末带孩子去看了电影，很喜欢。", "屏幕有划痕，要求退货", "我们明天开会讨论这个问题", "第一章 总则"],
    "gbk": ["苹果发布了新的手机", "体验很差，再也不来了", "北京,上海,广州"],
    "big5": ["週末帶孩子去看了電影，很喜歡。", "我們明天開會討論這個問題", "臺北市政府公告"],
    "cp932": ["週末に子供と映画を見ました。", "明日の会議で話し合いましょう", "商品が届きません"],
    "euc_jp": ["週末に子供と映画を見ました。", "明日の会議で話し合いましょう", "商品が届きません"],
    "euc_kr": ["주말에 아이와 영화를 봤어요.", "내일 회의에서 이야기합시다"],
    "latin1": [
        "Nous étions déçus par la qualité",
        "Das Frühstück war schön",
        "El niño comió mañana",
        "Não é à toa",
        "für alle",
    ],
    "cp1252": ["She said “no” and didn’t come", "C’est l’été – enfin"],
}
NAMES = {"gbk": "gb18030", "euc_jp": "euc-jp", "euc_kr": "cp949", "cp1252": "windows-1252"}


@pytest.mark.parametrize("encoding", SENTENCES)
def test_one_sentence_is_enough_to_recognise_an_encoding(encoding):
    found = [recognise(sentence.encode(encoding)).best for sentence in SENTENCES[encoding]]
    assert [each and each.name for each in found] == [NAMES.get(encoding, encoding)] * len(found)


@pytest.mark.parametrize(
    "encoding, text",
    [
        ("cp1250", "Książka jest świetna, polecam każdemu"),
        ("iso8859-2", "Książka jest świetna, polecam każdemu"),
        ("cp1254", "Bu kitabı çok beğendim, şiddetle öneriyorum"),
        ("koi8-r", "Качество плохое, не рекомендую"),
        ("mac_roman", "Nous étions déçus par la qualité"),
        ("cp850", "Das Frühstück war schön"),
        ("cp1253", "Η ποιότητα είναι πολύ κακή"),
        ("euc_jp", "東京都"),
    ],
)
def test_what_cannot_be_told_is_unknown_rather_than_wrong(encoding, text):
    assert recognise(text.encode(encoding)).best is None


def test_a_large_file_is_recognised_by_lines_around_its_first_foreign_byte(tmp_path, monkeypatch):
    monkeypatch.setattr(refusals, "SAMPLE", 500)
    path = tmp_path / "a.txt"
    path.write_bytes(b"plain ascii\n" * 30_000 + ("，".join(CHINESE) + "\n").encode("gbk") * 10_000)
    with pytest.raises(UserError, match=r"a.txt:30001: not UTF-8; it looks like GB18030 \(Chinese\)"):
        list(read_text(path))


WRONG = {
    "big5": ("text\n周末带孩子去看了电影，很喜欢。".encode("gbk"), r"a.csv:2: not big5; it looks like GB18030"),
    "gbk": (csv(CHINESE).encode("utf-16-le"), r"a.csv:2: not gbk; it looks like UTF-16LE: use --encoding utf-16le"),
    "ascii": (csv(CHINESE[:1] * 4).encode()[:30], r"a.csv:2: not ascii, or damaged"),
    "gb18030": (csv(CHINESE).encode("gb18030") + b"ok\xff\n", r"a.csv:6: not gb18030, or damaged; repair this line"),
}  # fmt: skip


@pytest.mark.parametrize("encoding", WRONG)
def test_a_wrong_encoding_is_refused_with_the_line_and_the_right_one(tmp_path, encoding):
    content, message = WRONG[encoding]
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    declare(str(path), encoding)
    with pytest.raises(UserError, match=message):
        list(read_lines(path))


def test_a_cut_utf16_file_is_refused_with_its_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(csv(CHINESE).encode("utf-16")[:-1])
    with pytest.raises(UserError, match=r"a.csv:5: not utf-16-le, or damaged"):
        list(read_lines(path))


def test_an_unknown_encoding_is_one_line_with_a_suggestion(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(csv(CHINESE))
    for verb in (
        lambda name: seqloom.fit(task="classification", data=str(path), encoding=name, quiet=True),
        lambda name: seqloom.compare(data=str(path), encoding=name, out=tmp_path / "out", quiet=True),
        lambda name: doctor(str(path), encoding=name),
    ):
        with pytest.raises(UserError, match=r"unknown encoding 'gb1803'; did you mean 'gb18030'\?"):
            verb("gb1803")


def test_the_latest_declaration_counts_for_a_file_and_for_its_folder(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(csv(CHINESE).encode("gbk"))
    for spec, encoding in ((path, None), (tmp_path, "gbk"), (path, None), (path, "gb18030")):
        declare(str(spec), encoding)
        assert (files.declared(path) or (None,))[0] == encoding


def test_a_later_declaration_replaces_an_earlier_one(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(csv(CHINESE).encode("gbk"))
    declare(str(path), "gbk")
    assert len(rows_of(path)) == 4
    declare(str(path), None)
    with pytest.raises(UserError, match="GB18030"):
        rows_of(path)


def test_a_run_is_trained_on_a_declared_encoding_and_judges_new_files_by_themselves(tmp_path):
    data, other = tmp_path / "a.csv", tmp_path / "b.csv"
    data.write_bytes(csv(CHINESE * 20).encode("gbk"))
    other.write_text(csv(CHINESE))
    settings = ["train.steps=2", "train.threads=1", "model.width=8", "data.valid_fraction=0.2"]
    how = {"task": "classification", "data": str(data), "out": tmp_path / "run", "overrides": settings, "quiet": True}
    with pytest.raises(UserError, match="add --encoding gb18030"):
        seqloom.fit(**how)
    run = seqloom.fit(**how, encoding="gb18030")
    assert run.folder.config().data["encoding"] == "gb18030"
    assert run.evaluate(str(other))["accuracy"] == run.evaluate(str(other), encoding="gb18030")["accuracy"]
    with pytest.raises(UserError, match="add --encoding gb18030"):
        run.evaluate(str(data))
    (first, *_) = run.predict(str(data), settings={"encoding": "gbk"})
    assert first["text"] == CHINESE[0]


def test_another_process_reads_the_data_as_the_run_recorded_it(tmp_path):
    data = tmp_path / "a.csv"
    data.write_bytes(csv(CHINESE).encode("gbk"))
    config = configure(None, {"task.name": "classification", "data.train": str(data), "data.encoding": "gbk"})
    worker = RunConfig.model_validate_json(config.model_dump_json())
    assert Material(worker).parts["train"].labels.total() > 0


def test_the_doctor_reads_a_declared_encoding(tmp_path):
    data = tmp_path / "a.csv"
    data.write_bytes(csv(CHINESE).encode("gbk"))
    assert [f for f in doctor(str(data), task="classification") if f.level == "error"]
    assert not [f for f in doctor(str(data), task="classification", encoding="gbk") if f.level == "error"]


@pytest.mark.parametrize("between, name", [(",", "a.csv"), (";", "a.csv"), ("\t", "a.csv"), ("\t", "a.tsv")])
@pytest.mark.parametrize("encoding", ["gbk", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_columns_of_a_table_without_a_header_are_found_in_any_encoding(tmp_path, between, name, encoding, end):
    path, same = tmp_path / name, tmp_path / "same.csv"
    path.write_bytes(csv(CHINESE * 9, between, end).partition(end)[2].encode(encoding))
    same.write_text(csv(CHINESE * 9).partition("\n")[2])
    declare(str(path), "gbk")
    roles = [find_shape("labelled").roles(str(each), {}) for each in (path, same)]
    assert roles[0] == roles[1] and {choice.path: choice.value for choice in roles[0]}["data.label"] == "2"


@pytest.mark.parametrize("encoding", ["gbk", "utf-16", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_series_is_read_in_any_encoding_and_with_any_line_ends(tmp_path, encoding, end):
    path = tmp_path / "a.csv"
    lines = ["日期,温度,湿度", *(f"2024-01-{day:02},{day}.5,{day * 2}" for day in range(1, 29))]
    path.write_bytes(end.join(lines).encode(encoding))
    declare(str(path), "gbk")
    shape = find_shape("series")
    (series,) = shape.open(str(path), shape.options(train=str(path), time="日期")).series
    assert series.values.shape == (28, 2) and series.values[2].tolist() == [3.5, 6]


@pytest.mark.parametrize("content", [b'{"text": "a"}\n', "schön\n".encode("latin1"), "schön".encode("utf-16-le")])
def test_utf16_without_its_byte_order_mark_is_refused_as_any_other_encoding(content, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    files.declare(str(path), "utf-16")
    with pytest.raises(UserError, match=r"a\.jsonl:1: not utf-16"):
        list(files.read_lines(path))
