// A page made by the server (a report, an explanation, an answer) in a sandboxed frame, to open or download.
import { text } from "./api.js";
import { button, download, el, fault } from "./dom.js";
import { t } from "./words.js";

export function framed(address, name, title) {
  const box = el("div", { class: "framed", "data-page": address, "data-name": name });
  const get = async () => {
    try { download(`${name}.html`, await text(address), "text/html"); } catch (error) { box.append(fault(error)); }
  };
  box.append(
    el("div", { class: "row" }, el("a", { href: address, target: "_blank", rel: "noopener noreferrer", class: "button quiet" }, t("open")),
      button(t("download"), get, { class: "quiet" })),
    el("iframe", { src: address, sandbox: "allow-scripts", referrerpolicy: "no-referrer", title, loading: "eager" }));
  return box;
}

// Only pages of this server are shown, whatever an answer says.
export const own = (address) => (typeof address === "string" && /^\/api\/[\w./~%-]+$/.test(address) && !address.includes("..") ? address : null);
