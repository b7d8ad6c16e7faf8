// One model of the playground: its continuation token by token, the alternatives of a token, and what it cost.
import { stream } from "./api.js";
import { bars, button, bytes, el, fault, fill, hideTip, number, percent, put, showTip, visible } from "./dom.js";
import { about } from "./models.js";
import { t } from "./words.js";

export function column(model, settings, changed) {
  const state = { prompt: "", tokens: [], picked: -1, control: null, chat: false, turns: [], ended: null, done: null, began: 0, first: 0 };
  const [text, panel, facts, past] = [el("div", { class: "tokens", role: "group", "aria-label": model.name }), el("div", { class: "alternatives" }), el("dl", { class: "facts" }), el("div", { class: "turns" })];
  const element = el("article", { class: "column" }, el("h2", {}, model.name), about(model), past, text, panel, facts);
  hint();

  function hint() { fill(text, el("span", { class: "muted" }, t("tokens.hint"))); }

  function start(prompt, chat) {
    if (chat && model.chat) {
      if (state.tokens.length) state.turns.push({ role: "assistant", content: written() });
      if (prompt.trim()) state.turns.push({ role: "user", content: prompt });
      turns();
    } else { state.turns = []; past.replaceChildren(); }
    Object.assign(state, { prompt, chat: chat && model.chat, tokens: [], picked: -1 });
    go();
  }

  const written = () => state.tokens.map((token) => token.shown ?? token.text).join("");
  const turns = () => fill(past, state.turns.map((turn) => el("div", { class: `turn ${turn.role === "user" ? "user" : "model"}` },
    el("span", { class: "who" }, turn.role === "user" ? t("you") : model.name), el("p", {}, turn.content))));

  async function go() {
    stop();
    const control = new AbortController();
    const kept = state.tokens.map((token) => token.text).join("");
    const body = { ...settings(), ...(state.chat ? { messages: state.turns } : { prompt: state.prompt + kept }) };
    Object.assign(state, { control, ended: null, done: null, began: performance.now(), first: 0, made: 0 });
    panel.replaceChildren();
    draw();
    changed();
    try {
      await stream(`/api/models/${encodeURIComponent(model.name)}/generate`, { body, signal: control.signal, each: take });
    } catch (error) {
      if (error.name === "AbortError") state.ended ||= "abort"; else fill(panel, fault(error, go));
    }
    if (state.control !== control) return;
    state.control = null;
    tell();
    changed();
  }

  function take(event) {
    if (event.token || event.text) {
      state.first ||= performance.now();
      state.made += 1;
      const token = event.token || { text: event.text, logprob: null, top: [] };
      state.tokens.push({ ...token, shown: event.text });
      if (state.tokens.length === 1) text.replaceChildren();
      add(state.tokens.length - 1);
      if (state.made % 8 === 1) tell();
    }
    if (event.end) state.ended = event.end;
    if (event.done) state.done = event.done;
  }

  function draw() {
    text.replaceChildren();
    if (state.prompt && !state.chat) text.append(el("span", { class: "prompt" }, state.prompt));
    state.tokens.forEach((_, n) => add(n));
  }

  function add(n) {
    const token = state.tokens[n];
    if (n === 0 && !text.childNodes.length && state.prompt && !state.chat) text.append(el("span", { class: "prompt" }, state.prompt));
    const chip = el("span", { class: "token", role: "button", tabindex: n === 0 ? "0" : "-1", "data-n": n }, token.text.replaceAll("\n", "↵"));
    if (token.logprob !== null) chip.style.setProperty("--strength", `${Math.round(100 * (1 - Math.exp(token.logprob)))}%`);
    text.append(chip);
    if (token.text.includes("\n")) text.append(el("br"));
    text.scrollTop = text.scrollHeight;
  }

  // The alternatives: a tip for the pointer and the focus, a list to choose from after a click.
  const at = (event) => { const chip = event.target.closest?.(".token"); return chip ? Number(chip.dataset.n) : -1; };
  const chips = () => [...text.querySelectorAll(".token")];
  function peek(event) {
    const token = state.tokens[at(event)];
    if (!token) return;
    showTip(event.target.closest(".token"), el("strong", {}, visible(token.text)), token.logprob === null ? "" : ` ${percent(Math.exp(token.logprob))}`,
      token.top?.length ? bars(token.top.map(([name, logprob]) => [visible(name), Math.exp(logprob)]), visible(token.text)) : null);
  }

  function pick(n) {
    const token = state.tokens[n];
    if (!token) return;
    hideTip();
    move(n);
    state.picked = n;
    chips().forEach((chip, k) => chip.classList.toggle("picked", k === n));
    const branch = state.chat ? null : (name) => () => { state.tokens = [...state.tokens.slice(0, n), { text: name, shown: name, logprob: null, top: token.top, chosen: true }]; go(); };
    const rows = [...(token.top || [])].sort((a, b) => b[1] - a[1]).map(([name, logprob]) => [visible(name), Math.exp(logprob), branch && branch(name)]);
    fill(panel, el("h3", {}, t("alternatives"), " ", el("code", {}, visible(token.text))), rows.length ? bars(rows, visible(token.text)) : el("p", { class: "muted" }, t("no alternatives")),
      el("p", { class: "muted" }, t(state.chat ? "chat.branch" : "branch")), button(t("close"), close, { class: "quiet" }));
  }

  function close() { panel.replaceChildren(); chips().forEach((chip) => chip.classList.remove("picked")); chips()[state.picked]?.focus(); }

  function move(n) {
    const all = chips();
    if (!all[n]) return;
    for (const chip of all) chip.tabIndex = -1;
    all[n].tabIndex = 0;
    all[n].focus({ preventScroll: false });
  }

  text.addEventListener("pointerover", (event) => { if (event.pointerType !== "touch") peek(event); });
  text.addEventListener("pointerout", hideTip);
  text.addEventListener("focusin", peek);
  text.addEventListener("focusout", hideTip);
  text.addEventListener("click", (event) => pick(at(event)));
  text.addEventListener("keydown", (event) => {
    const n = at(event);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -1e9, End: 1e9 }[event.key];
    if (n < 0 || (!step && event.key !== "Enter" && event.key !== " ") || event.ctrlKey) return;
    event.preventDefault();
    if (step) move(Math.max(0, Math.min(state.tokens.length - 1, n + step)));
    else { pick(n); panel.querySelector("button")?.focus(); }
  });

  function tell() {
    const seconds = state.done?.seconds ?? (performance.now() - state.began) / 1000;
    const many = state.done?.completion_tokens ?? state.made;
    const rows = [[t("fact.ms"), many ? number((1000 * seconds) / many) : "–"], [t("fact.rate"), many ? number(many / seconds) : "–"],
      [t("fact.first"), state.first ? `${Math.round(state.first - state.began)} ms` : "–"], [t("fact.state"), bytes(state.done?.state_bytes ?? model.state_bytes)],
      [t("fact.tokens"), state.done?.prompt_tokens !== undefined ? `${state.done.prompt_tokens} + ${many}` : String(many)],
      [t("fact.end"), state.ended ? t(`end.${state.ended}`) : "…"]];
    fill(facts, rows.map(([name, value]) => put(el("div"), el("dt", {}, name), el("dd", {}, value))));
  }

  function stop() { state.control?.abort(); }
  function clear() { stop(); Object.assign(state, { tokens: [], turns: [] }); past.replaceChildren(); panel.replaceChildren(); facts.replaceChildren(); hint(); }
  return { element, start, stop, clear, busy: () => state.control !== null };
}
