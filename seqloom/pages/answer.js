// Switches the language, and opens the source that a citation leads to.
"use strict";
(() => {
  const buttons = [...document.querySelectorAll("button[data-language]")];

  function speak(language) {
    document.body.dataset.language = language;
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.language === language));
  }

  function open() {
    const place = /^#q\d+$/.test(location.hash) ? document.getElementById(location.hash.slice(1)) : null;
    const fold = place && place.closest("details");
    if (!fold) return;
    fold.open = true;
    place.scrollIntoView({ block: "center" });
  }

  for (const button of buttons) button.addEventListener("click", () => speak(button.dataset.language));
  for (const link of document.querySelectorAll('a[href^="#q"]')) link.addEventListener("click", () => setTimeout(open));
  window.addEventListener("hashchange", open);
  if ((navigator.language || "").toLowerCase().startsWith("zh")) speak("zh");
  open();
})();
