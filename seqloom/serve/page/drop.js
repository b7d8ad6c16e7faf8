// A place to drop a file on, or to choose one.
import { button, el, fill } from "./dom.js";
import { t } from "./words.js";

export function drop(label, taken) {
  const input = el("input", { type: "file", class: "unseen", tabindex: "-1", "aria-label": label, onchange: () => take(input.files[0]) });
  const said = el("span", {}, label);
  const clear = button(t("remove"), () => take(null), { class: "quiet", hidden: true });
  const box = el("div", { class: "drop" }, said, " ", button(t("choose file"), () => input.click(), { class: "quiet" }), clear, input);
  function take(file) {
    fill(said, file ? file.name : label);
    clear.hidden = !file;
    if (!file) input.value = "";
    taken(file || null);
  }
  const over = (on) => (event) => { event.preventDefault(); box.classList.toggle("over", on); };
  box.addEventListener("dragover", over(true));
  box.addEventListener("dragleave", over(false));
  box.addEventListener("drop", (event) => { over(false)(event); if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]); });
  return box;
}

// A file that misses its place must not replace the page.
for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => { if (event.dataTransfer?.types.includes("Files")) event.preventDefault(); });
