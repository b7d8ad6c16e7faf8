// What is seen as one file: the view without its controls, with the styles inside. A framed page is that page itself.
import { text } from "./api.js";
import { announce, byId, download } from "./dom.js";
import { t } from "./words.js";

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

export async function savePage(view) {
  const section = byId("main").querySelector("section.view:not([hidden])");
  if (!section) return;
  const frame = section.querySelector(".framed");
  if (frame && frame.offsetParent) download(`seqloom-${frame.dataset.name}.html`, await text(frame.dataset.page), "text/html");
  else download(`seqloom-${view}.html`, alone(section), "text/html");
  announce(t("saved"));
}

function alone(section) {
  const copy = document.implementation.createHTMLDocument(document.title);
  copy.documentElement.lang = document.documentElement.lang;
  if (document.documentElement.dataset.theme) copy.documentElement.dataset.theme = document.documentElement.dataset.theme;
  const main = copy.createElement("main");
  main.append(copy.importNode(section, true));
  copy.body.append(main);
  quiet(main, section);
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).map((rule) => rule.cssText).join("\n");
  const head = `<head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${POLICY}">`
    + `<meta name="viewport" content="width=device-width, initial-scale=1"><style>\n${rules.replaceAll("</", "<\\/")}\n</style>`;
  return `<!doctype html>\n${copy.documentElement.outerHTML.replace("<head>", () => head)}`;
}

// Inputs become what they hold; buttons that only act go, those that are a part of the text stay as text.
function quiet(copy, original) {
  const values = [...original.querySelectorAll("input, textarea, select")];
  [...copy.querySelectorAll("input, textarea, select")].forEach((input, n) => {
    const one = values[n];
    const shown = one.type === "checkbox" || one.type === "radio" ? (one.checked ? "☑" : "☐")
      : one.type === "file" || one.type === "password" ? "" : one.tagName === "SELECT" ? one.selectedOptions[0]?.textContent || "" : one.value;
    const text = copy.ownerDocument.createElement(one.tagName === "TEXTAREA" ? "pre" : "span");
    text.textContent = shown;
    text.className = "value";
    input.replaceWith(text);
  });
  for (const found of copy.querySelectorAll("[hidden], .acts, button.quiet, button.main, .drop")) found.remove();
  for (const found of copy.querySelectorAll("button")) {
    const text = copy.ownerDocument.createElement("span");
    text.className = found.className;
    text.append(...found.childNodes);
    text.style.cssText = found.style.cssText;
    found.replaceWith(text);
  }
  for (const link of copy.querySelectorAll("a")) link.removeAttribute("href");
}
