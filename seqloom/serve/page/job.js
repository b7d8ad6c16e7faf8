// A job: its progress line by line while it runs, then what came of it.
import { get, post, stream } from "./api.js";
import { announce, button, el, fault, fill, number, percent, put } from "./dom.js";
import { named, t } from "./words.js";

const LINES = 300;
const ENDED = ["done", "finished", "failed", "cancelled", "canceled"];

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

  const over = () => ENDED.includes(facts.state || facts.status);

  function show(found) {
    facts = { ...facts, ...found };
    const state = facts.state || facts.status;
    fill(head, el("h2", {}, named("kind", facts.kind), " ", facts.name || facts.data || ""),
      el("p", {}, el("span", { class: `status ${/^\w+$/.test(state) ? state : ""}` }, named("status", state)), facts.seconds ? ` ${number(facts.seconds)} s` : ""));
    if (Number.isFinite(facts.progress)) { bar.hidden = over(); bar.value = facts.progress; bar.textContent = percent(facts.progress); }
    cancel.hidden = over();
    if (over()) ended();
  }

  function take(event) {
    if (typeof event.line === "string") line(event.line);
    else if (Array.isArray(event.lines)) event.lines.forEach((one) => line(String(one.line ?? one)));
    if (event.state || event.status || Number.isFinite(event.progress)) show(event);
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
    const state = facts.state || facts.status;
    const failed = typeof facts.error === "object" ? facts.error?.message : facts.error || facts.message;
    const comparison = facts.comparison || (facts.kind === "compare" && facts.result?.id);
    fill(after, failed && state !== "done" ? el("p", { class: "fault" }, String(failed)) : null,
      comparison ? button(t("show report"), () => page.go("compare", comparison), { class: "main" }) : null,
      ["done", "finished"].includes(state) && !comparison ? put(el("p"), el("a", { href: "#/runs" }, t("see runs"))) : null);
    announce(named("status", state));
  }

  return { element, leave: () => control.abort() };
}
