// Before the first paint: the colours and the language that were chosen last time.
"use strict";
(() => {
  const root = document.documentElement;
  const kept = (name) => { try { return localStorage.getItem(`seqloom.${name}`); } catch { return null; } };
  const theme = kept("theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  const language = kept("language") || (/^zh\b/i.test(navigator.language) ? "zh" : "en");
  root.lang = language === "zh" ? "zh-CN" : "en";
})();
