"""Odd words after each command, a line each; `!`: has to be refused. What needs more than words is in commands.py."""

from __future__ import annotations

import shlex

from hypothesis import strategies as st

from fuzz.case import Wanted
from fuzz.sources import Draw

_ODD = {
    "generate": """
! --chat
! --top-p 2
! --top-k -1
! --temperature -1
! --temperature nan
! --count 1000000000
--stop ''
--top-p 0
--temperature 1e-300
--beams 100000
--system x
""",
    "explain": """
! --row 100000
! --view nosuch
! --links no.txt
! --passage x
--worst 100000
--layer 9
--head 99
--with ''
--against nosuch
--target nosuch
--second x
""",
    "fit": """
! --columns nosuch=x
! --columns text=
! --columns =x
! --columns ''
! --columns text
! --columns text=a,text=b
! --data ''
! --data -
! --data sample:
! --data sample:nosuch
! --data nosuch
! --data nosuch,nosuch
! --data hf:x
! --data /dev/zero
! --model nosuch
! --model ''
! --model gru/../gru
! --task nosuch
! --task ''
! --from nosuch
! --from ''
! --from hf:
! --from hf:nosuch
! --from weights:nosuch
! --from /dev/zero
! --encoding nosuch
! --encoding rot13
! --encoding ''
! --valid nosuch
! --test sample:nosuch
--encoding utf-8
--encoding gb18030
--encoding utf-16
--no-choose
--json
-o data.valid_fraction=0
-o data.valid_fraction=0.999999
-o data.examples=1
-o data.examples=0.001
-o data.examples=1000000
-o train.epochs=1e-9
-o train.keep_at=[1,2,999]
-o train.precision=bfloat16
-o lora.rank=4
-o train.method=probe
-o train.method=prompt
-o train.freeze=1000
""",
    "doctor": """
! --columns nosuch=x
! --columns ''
! --columns text
! --data ''
! --data -
! --data sample:nosuch
! --data nosuch
! --data /dev/zero
! --task nosuch
! --task ''
! --encoding nosuch
! --valid nosuch
! -o train.steps=2
--encoding gb18030
--encoding utf-16
--json
""",
    "compare": """
! --models nosuch
! --models ''
! --models ngram
! --params x
! --params -1
! --params 0
! --params 9999999999999999999999999999999999999999
! --budget x
! --budget tokens
! --budget tokens=-1
! --budget tokens=nan
! --budget seconds=inf
! --margin x
! --margin nan
! --margin -1%
! --count x
! --prefer x
! --on x
! --ladder x
! --ladder -1
! --per-label x
! --per-label 0
! --max-params x
! --trial-share 2
! --trial-share nan
! --pretrain no.txt
! --examples 10
! --pretrain-budget tokens=50
! --queries no.jsonl
! --each no
! --max-latency-ms nan
! --seeds 0
! --jobs 0
--models gru,gru
""",
    "diagnose": """
! --models nosuch
! --models ''
! --models ,
! --models a=gru:width=0
! --models a=gru:nosuch=1
! --models a=gru:width=nan
! --models a=gru:preset=gpt2
! --models gru:width=1e9
! --models a=
! --models =gru
! --models bert
! --problems nosuch
! --params 10000000000000
! --params 0
! --params nan
--models gru,gru
--models a=gru:
--problems ''
--problems parity,parity
--problems parity,
! --params 1
""",
    "prompt": """
! --shots ''
! --shots ,
! --shots -1
! --shots 1.5
! --shots a
! --shots 1,,2
! --shots 9999999999999999999999999999999999999999
--shots 0,0
--shots ' 1 '
--shots ٣
--shots 1000000
""",
    "ask": """
! --answerer nosuch
! --answerer ''
! --answerer openai:
! --answerer openai:x
! --answerer openai:http://127.0.0.1:1#m
! --answerer openai:ftp://x#m
! --answerer hf:nosuch
! --answerer weights:nosuch
! --answerer /dev/zero
! --reader nosuch
! --reader ''
! --reader /dev/zero
""",
    "index": """
! --encoder nosuch
! --encoder ''
! --encoder hf:
! --encoder hf:nosuch
! --encoder weights:nosuch
! --encoder /dev/zero
! --encoder plain
! --columns nosuch=x
! --columns text=
! --evaluate no.jsonl --judgements no.tsv
! --evaluate no.jsonl
""",
}
_PREDICT = {  # which tasks know it: it has to be refused by the others
    "--beams 2": "translation",
    "--temperature 1": "translation",
    "--top-p 0.5": "translation",
    "--n-best 2": "translation",
    "--alignments": "translation",
    "--length-penalty 2": "translation",
    "--back 2": "forecasting",
    "--chart out.html": "forecasting",
    "--int8": "classification forecasting question_answering tagging translation",
    "--min-new 9 --max-new 3": "",
    "--passage x": "",
    "--n-best 0": "",
    "--beams 0": "",
    "--back 10000000": "",
    "--temperature nan": "",
    "--top-p 2": "",
    "--out out.xyz": "",
    "--columns nosuch=x": "",
}


def odd_words(draw: Draw, command: str) -> tuple[list[str], Wanted]:
    line = draw(st.sampled_from([line for line in _ODD[command].splitlines() if line]))
    return shlex.split(line.lstrip("! ")), "fail" if line.startswith("!") else "either"


def odd_prediction(draw: Draw, task: str) -> tuple[list[str], Wanted]:
    line = draw(st.sampled_from(sorted(_PREDICT)))
    return line.split(), "either" if task in _PREDICT[line] else "fail"
