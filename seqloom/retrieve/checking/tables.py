"""Words that decide what a sentence says, in English and Chinese: negation, quantifiers, modality, direction.

The tables are short on purpose and hold closed classes and common antonyms only. A word that stands in none of them
is an ordinary word, and one that the source lacks is caught as such. An underscore stands for the space in a phrase.
"""

from __future__ import annotations

NEGATIONS = """
not never no none nobody nothing nowhere neither nor without hardly barely lacks lack lacking no_longer no_one
by_no_means not_yet
不得 不能 不可 不可以 不准 不允许 不要 请勿 切勿 不 没 没有 未 无 非 勿 并非 从未 尚未 不再 未曾 毫无 决不 绝不 从不
禁止 严禁
"""

QUANTIFIERS = {
    "all": ("all every each entire whole everyone everybody everything 所有 全部 一切 每 每个 全体 都是 一律"),
    "always": "always 始终 总是",
    "any": "any anyone anybody anything 任何",
    "most": "most mostly mainly majority largely usually 大多数 多数 大部分 大多 绝大多数 普遍 主要",
    "some": "some several a_few a_number_of 部分 一部分 一些 有些 若干 某些 数个 几个",
    "few": "few 少数 极少数 小部分 个别",
    "many": "many much numerous often a_lot_of lots_of 许多 很多 众多 不少 大量 经常",
    "half": "half 一半 半数",
    "only": "only solely merely exclusively 只 仅 只有 仅仅 唯一",
    "both": "both 两者",
    "nearly": "almost nearly virtually practically 几乎 近乎 将近",
    "about": "approximately roughly circa",
    "约": "大约 约 左右 大概",
    "except": "except apart_from other_than 除 除了",
    "at least": "at_least no_less_than not_less_than no_fewer_than a_minimum_of 至少 不少于 不低于 最少",
    "at most": (
        "at_most up_to no_more_than not_more_than not_exceeding a_maximum_of 至多 最多 不超过 不多于 不高于 不大于"
    ),
    "more than": "more_than",
    "less than": "less_than fewer_than 不到 不足",
    "sometimes": "sometimes occasionally rarely seldom 有时 偶尔 很少",
}

MODALITIES = {
    "may": "may might could possibly perhaps probably likely maybe apparently 可能 也许 或许 大概会 预计 据称",
    "must": "must shall have_to has_to had_to 需要 需 必须 应当 应该 应 须 必需",
    "should": "should ought_to",
    "will": "will",
    "can": "can able_to 能 能够 可以 可",
}

CONDITIONS = {
    "if": "if provided assuming as_long_as in_case 如果 若 若是 假如 假设 倘若 只要 要是 如",
    "only if": "only_when",
    "unless": "unless 除非",
    "whether": "whether 是否",
}
# Words that may stand for "if": where a notifiable disease is found, when the tank is full.
WEAK_CONDITIONS = frozenset(("when", "where", "whenever", "once", "当", "时", "的话", "一旦"))

# What somebody plans or wants to do is not done.
INTENTIONS = """
plan planned planning intend aim propose seek hope expect want wish try attempt agree decide promise pledge offer
threaten refuse consider prepare undertake
"""
INTENTIONS_CHINESE = "计划 打算 拟 有意 准备 试图 企图 希望 争取 考虑 承诺 答应 拒绝"

# Verbs before a clause, which a phrase belongs to or not.
EMBEDDING = """
announce claim argue estimate believe report suggest think deny warn order ask tell urge force allow confirm predict
refuse agree decide promise threaten offer fail vote admit
"""
EMBEDDING_CHINESE = "宣布 认为 要求 通知 命令"

# Stems of words whose object the writer does not vouch for: a clause quoted without them says more than its source.
_DOUBTS = """
claim alleg deni deny doubt myth fals untru rumour rumor pretend suspect specul hypothes argu predict hop wish fear
声称 谎称 否认 怀疑 谣传 传言 误以为 假装 据称 传闻 预测
"""
DOUBTS = frozenset(_DOUBTS.split())

# Pairs of opposites, separated by a slash; words with one meaning share a side, joined by a plus sign.
ANTONYMS = """

rise+increase+grow+climb+gain+up+raise+expand+soar/fall+decrease+decline+drop+shrink+down+lower+reduce+cut+plunge+lose
more+above+over/less+fewer+below+under  at_least/at_most  more_than/less_than  to/from  before+prior/after
earlier/later  ahead/behind  higher/lower  high/low  larger+bigger+greater/smaller  largest+biggest/smallest
large+big/small  long/short  longer/shorter  longest/shortest  lengthen/shorten  faster/slower  fast/slow
strengthen/weaken  strong/weak  stronger/weaker  win/lose  won/lost  buy/sell  bought/sold  import/export
left/right  upper/lower  top/bottom  north/south  east/west  northern/southern  eastern/western  inside/outside
on/off  open/close  begin+start/end+stop+finish  hot/cold  warm/cold  warmer/colder  warm/cool  better/worse
best/worst  first/last  advance/retreat  accept/reject  allow/forbid  approve/reject  include/exclude  add/remove
clockwise/anticlockwise  clockwise/counterclockwise  positive/negative  profit/loss  cheap/expensive  cheaper/dearer
rich/poor  heavy/light  heavier/lighter  deep/shallow  deeper/shallower  full/empty  old/young  new/old  early/late
maximum/minimum  with/without  succeed/fail  improve/worsen  accelerate/delay  support/oppose  enable/disable
since/until  borrow/lend  speed/slow  in_favour_of+in_favor_of+for/against  because+due/although+though+despite  and/or
上升+上涨+增加+增长+升高+提高+增大+扩大+加快+增强+涨/下降+下跌+减少+降低+减小+缩小+减慢+减弱+跌+降  升/降
高于+多于+超过+大于/低于+少于+小于  之前+以前+前/之后+以后+后  前者/后者  至少/至多  最高/最低  最大/最小  最多/最少
高/低  多/少  大/小  长/短  快/慢  深/浅  强/弱  左/右  上/下  东/西  南/北  东南/西北  东北/西南  领先/落后
战胜+击败/负于+输给  胜/负  赢/输  买入/卖出  买/卖  进口/出口  盈利/亏损  打开/关闭  开始/结束  早/晚  提前/推迟
支持+赞成+同意/反对  接受/拒绝  通过/否决
内/外  允许/禁止  有效/无效  上半场/下半场  上半年/下半年  顺时针/逆时针  热/冷  好/坏  新/旧  正/负
首次/末次
"""

# What a sentence may add or drop without another meaning.
_FUNCTION = """
a an the this that these those it its they them their he him his she her hers we us our you your i me my who whom
whose which what and but yet so because as than then thus hence therefore however moreover also too either while
whereas although though when where why how there here is are was were be been being am do does did done doing have
has had having would of in at by to from for into onto upon about around per via among between through during within
against toward towards despite amid according regarding concerning furthermore additionally meanwhile nevertheless
thereby respectively indeed due such same own very just even still already now again itself himself herself
themselves in_order_to as_well_as aged please ones
请 此外 另外 同时 例如 比如 当 便 亦 且 皆 的 地 得 了 着 过 在 于 是 和 与 及 以及 并 并且 而 而且 但 但是
却 不过 然而 也 都 均 就 才 将 把 被 为 以 其 该 这 那 这个 那个 这些 那些 之 所 者 由 从 自 到 至 向 对 对于 关于
因为 由于 因此 所以 因而 其中 已 已经 曾 曾经 正在 会 要 有 共有 共 还 又 再 仍 仍然 则 即 尚 目前 个 们 等 吗 呢 吧
啊 很 非常 十分 进行 时 时候 它 他 她 它们 他们 她们 我 我们 你 您 你们 如 像 给 让 使 用 通过 根据 按 按照 同 跟 中
里 此 用于 可用于 是在 一个 一种 截至 随着 为了
"""
FUNCTION = frozenset(word.replace("_", " ") for word in _FUNCTION.split())

_PREPOSITIONS = """
in on at by from to for with without after before during since until of near under over between within through
against into 在 从 由 向 对 于 以 自 截至 随着 为了 经 作为
"""
PREPOSITIONS = frozenset(_PREPOSITIONS.split())
SUBORDINATORS = frozenset(
    ("when", "because", "while", "although", "though", "as", "where", "unlike", "因为", "由于", "与")
)

# Verbs that say no more than "have" before a noun.
LIGHT = {"play": "role", "make": "decision", "take": "decision", "reach": "decision"}

ANCHORS = frozenset(("than", "比"))  # what stands on which side matters

# One normal form and the words that are read as it.
_SAME = {
    "say": "said says stated states told 表示 说 称 指出",
    "fall": "fell fallen",
    "increase": "rise rose risen rises rising arisen grow grows grew grown growing",
    "decrease": "decline declines declined declining",
    "增加": "增长 上升",
    "减少": "下降",
    "低于": "少于 小于",
    "lose": "lost",
    "win": "won",
    "buy": "bought",
    "sell": "sold",
    "lead": "led",
    "hold": "held",
    "keep": "kept",
    "make": "made",
    "find": "found",
    "become": "became",
    "come": "came",
    "pay": "paid",
    "less": "fewer",
    "超过": "多于 高于 大于",
    "until": "till",
    "can": "cannot",
    "内": "以内 之内",
    "中": "之中",
    "之前": "以前 前",
    "之后": "以后 后",
    "它": "它们",
    "center": "centre",
    "also": "besides",
    "use": "used uses using",
    "die": "died dies dying",
    "lie": "lay lain lies lying",
    "take": "took taken",
    "give": "gave given",
    "write": "wrote written",
    "build": "built",
    "see": "saw seen sees",
    "run": "ran runs running",
    "go": "went gone goes going",
    "get": "got gotten gets",
    "know": "knew known",
    "show": "shown",
    "send": "sent",
    "spend": "spent",
    "bring": "brought",
    "think": "thought",
    "teach": "taught",
    "lend": "lent",
    "meet": "met",
    "speak": "spoke spoken",
    "choose": "chose chosen",
    "drive": "drove driven",
    "break": "broke broken",
    "fly": "flew flown",
    "draw": "drew drawn",
    "wear": "wore worn",
    "hide": "hid hidden",
    "feed": "fed",
    "deal": "dealt",
    "catch": "caught",
    "fight": "fought",
    "throw": "threw thrown",
    "freeze": "froze frozen",
    "steal": "stole stolen",
    "forbid": "forbade forbidden",
    "eat": "ate eaten",
    "drink": "drank drunk",
    "begin": "began begun",
    "strike": "struck",
    "shake": "shook shaken",
    "sink": "sank sunk",
    "hear": "heard",
    "stand": "stood",
    "understand": "understood",
    "mean": "meant",
    "由于": "因为 因 原因是 是因为",
}
SYNONYMS = {word: form for form, words in _SAME.items() for word in words.split()}

# Chinese words that merely contain a character of the tables above, and so are read whole.
WHOLE = """
不良 不断 不同 不过 不仅 不但 不久 不管 不论 未来 未知数 无论 无线 非常 非洲 上海 上市 上午 下午 以上 以下 以外
上一次 下一次 下载 上传 上述 下述 下潜 下赛季 上赛季 目前 前锋 前往 此前 此后 最后 后来 今后 后卫 后期 前期 同前
先前 东西 山东 广东 东京 东方 西方 西安 西藏 广西 江西 山西 陕西 湖南 湖北 河南 河北 海南 云南 南京 北京 南方 北方
东北 西南 西北 东南 大学 大约 大概 大部分 多数 少数 大多数 大型 小型 小时 小学 中学 中小学 中小 高中 中国 其中 高速
高级 长期 短期 长江 长城 成长 强度 强调 快速 深海 水深 负责 负债 负担 胜利 正常 正式 正确 真正 改正 新闻 新疆 最新
好像 友好 能力 能源 可能 可靠 可爱 功能 性能 智能 都市 首都 成都 一样 一起 一直 一定 一般 统一 进一步 万一 一旦 一致
之一 唯一 有权 有效 无效 有限 有关 没收 非法 除法 以及 内容 内部 国内 室内 应用 反应 相应 适应 供应 须知 约定 合约
需求 期间 宣布 认为 要求 通知 命令 条约 公约 纽约 每年 每天 每月 每日 每周 只要 半场 半年 上半场 下半场 上半年 下半年
开关
"""
