// Runs before the first paint, so that nobody is dazzled: the reader's own colours, else the system's.
(() => {
  let kept = null;
  try {
    kept = localStorage.getItem("dprime-theme");
  } catch {
    // no storage: follow the system
  }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = kept ?? (dark ? "dark" : "light");
})();
