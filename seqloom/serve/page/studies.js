// Studies: claims about sequence models, each with what was measured here.
import { get } from "./api.js";
import { command, el, empty, fault, fill, number, put } from "./dom.js";
import { pair, t } from "./words.js";

const KNOWN = ["holds", "conditions", "fails", "untold"];
const MOST = 60; // numbers of one study

export function create(section) {
  const [message, gallery] = [el("div"), el("div", { class: "gallery" })];
  put(section, message, gallery);

  async function enter() {
    try {
      const found = (await get("/api/studies")).studies;
      message.replaceChildren();
      if (!found.some((one) => one.result)) fill(message, empty(t("no studies"), t("studies.empty"), "seqloom study --all --quick --out runs/studies"));
      fill(gallery, [...found].sort((a, b) => Boolean(b.result) - Boolean(a.result)).map(card));
    } catch (error) { if (error.status !== 401) fill(message, fault(error, enter)); }
  }

  return { enter };
}

function card(study) {
  const finding = study.result?.finding;
  const verdict = KNOWN.includes(finding?.verdict) ? finding.verdict : "none";
  return el("article", { class: `card ${verdict}` }, el("h2", {}, study.what),
    finding ? el("p", {}, el("span", { class: `mark ${verdict}` }, t(`verdict.${verdict}`)), study.result.quick ? el("span", { class: "muted" }, " ", t("quick")) : null) : el("p", { class: "muted" }, study.message || t("not measured")),
    finding ? el("p", {}, pair(finding.summary)) : null,
    finding ? numbers(finding.numbers || []) : command(study.command || `seqloom study ${study.name} --out runs/studies`));
}

const numbers = (found) => el("details", {}, el("summary", {}, t("numbers", { count: found.length })), el("div", { class: "scroll", tabindex: "0" }, el("table", {},
  el("thead", {}, el("tr", {}, ["measured", "value", "interval", "claimed"].map((name) => el("th", {}, t(`study.${name}`))))),
  el("tbody", {}, found.slice(0, MOST).map((one) => el("tr", {}, el("td", { class: "long" }, pair(one.name)), el("td", { class: "number" }, number(one.value), " ", pair(one.unit)),
    el("td", { class: "number" }, Number.isFinite(one.low) ? `[${number(one.low)}, ${number(one.high)}]` : "–"), el("td", {}, pair(one.claimed))))))));
