// Texts in the language of the page. Elements remember the term they show, so a switch of language needs no new view.
import { TERMS } from "./terms.js";

export const language = () => (document.documentElement.lang.startsWith("zh") ? "zh" : "en");

class Term {
  constructor(key, values) { this.key = key; this.values = values; }
  toString() {
    const pair = TERMS[this.key];
    const text = pair ? pair[language() === "zh" ? 1 : 0] : this.key;
    return text.replace(/\{(\w+)\}/g, (whole, name) => (name in this.values ? String(this.values[name]) : whole));
  }
}

export const t = (key, values = {}) => new Term(key, values);
// The term of a name, such as that of a task; a name without one is shown as it is.
export const named = (group, name) => (`${group}.${name}` in TERMS ? t(`${group}.${name}`) : String(name ?? "–"));
export const isTerm = (value) => value instanceof Term;
// One of a pair [English, Chinese], as results have it.
export const pick = (pair) => (Array.isArray(pair) ? pair[language() === "zh" ? 1 : 0] : String(pair ?? ""));
export const pair = (found) => ({ toString: () => pick(found), isPair: true });

export function setLanguage(next) {
  document.documentElement.lang = next === "zh" ? "zh-CN" : "en";
  keep("language", next);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    if (node.term) node.data = String(node.term);
    for (const [name, term] of Object.entries(node.terms || {})) node.setAttribute(name, String(term));
  }
  document.dispatchEvent(new CustomEvent("language"));
}

export function keep(name, value) {
  try { localStorage.setItem(`seqloom.${name}`, value); } catch { /* a private window: chosen for this visit */ }
}
export function kept(name) {
  try { return localStorage.getItem(`seqloom.${name}`); } catch { return null; }
}
