// A job: its progress line by line while it runs, then what came of it.
import { get, post, stream } from "./api.js";
import { announce, button, el, fault, fill, percent, put } from "./dom.js";
import { named, t } from "./words.js";

const LINES = 300;
const ENDED = ["done", "failed", "cancelled"];

export function jobView(id, page) {
  const address = `/api/jobs/${encodeURIComponent(id)}`;
  const control = new AbortController();
  const [head, bar, log, after] = [el("div"), el("progress", { max: 1, value: 0, "aria-label": t("progress"), hidden: true }), el("pre", { class: "log", tabindex: "0", "aria-label": t("log") }), el("div")];
  const cancel = button(t("cancel job"), async () => {
    cancel.disabled = true;
    try { await post(`${address}/cancel`, {}); } catch (error) { fill(after, fault(error)); cancel.disabled = false; }
  }, { class: "quiet" });
  const element = el("div", {}, head, el("div", { class: "row acts" }, bar, cancel), log, after);
  const lines = [];
  let facts = {};
  follow();

  const over = () => ENDED.includes(facts.state);

  function show(found) {
    facts = { ...facts, ...found };
    const { state } = facts;
    fill(head, el("h2", {}, named("kind", facts.kind), " · ", String(facts.asked?.data ?? "")),
      el("p", {}, el("span", { class: `status ${/^\w+$/.test(state) ? state : ""}` }, named("status", state)), el("span", { class: "muted" }, asked(facts.asked || {}))));
    if (Number.isFinite(facts.progress)) { bar.hidden = over(); bar.value = facts.progress; bar.textContent = percent(facts.progress); }
    cancel.hidden = over();
    if (over()) ended();
  }

  const asked = ({ model, models, budget }) => [" ", [model, models?.join(", "), budget].filter(Boolean).join(" · ")];

  function take(event) {
    if (typeof event.line === "string") line(event.line);
    if (event.job) show(event.job);
    if (Number.isFinite(event.progress)) show({ progress: event.progress });
  }

  function line(text) {
    lines.push(text);
    if (lines.length > LINES) lines.shift();
    const near = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    log.textContent = lines.join("\n");
    if (near) log.scrollTop = log.scrollHeight;
  }

  async function follow() {
    try {
      show(await get(address));
      lines.length = 0;
      await stream(`${address}/events`, { signal: control.signal, each: take });
      show(await get(address));
    } catch (error) {
      if (error.name !== "AbortError") fill(after, fault(error, () => { after.replaceChildren(); follow(); }));
    }
  }

  function ended() {
    const { state, kind, message, result } = facts;
    fill(after, message && state !== "done" ? el("p", { class: "fault" }, String(message)) : null,
      result && kind === "compare" && state === "done" ? button(t("show report"), () => page.go("compare", result), { class: "main" }) : null,
      result && kind === "fit" ? put(el("p"), el("a", { href: "#/runs" }, t("see runs"))) : null);
    announce(named("status", state));
  }

  return { element, leave: () => control.abort() };
}
