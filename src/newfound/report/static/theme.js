// Light or dark: the setting of the system until the reader chooses. Canvases are redrawn.
const painters = [];
let printing = false;
const root = document.documentElement;
const system = window.matchMedia("(prefers-color-scheme: dark)");
const repaint = () => painters.forEach((paint) => paint());
const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
const ink = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

// A page opened from disk may not have access to localStorage.
function remembered() {
  try {
    return localStorage.getItem("newfound-theme");
  } catch {
    return null;
  }
}

function setTheme(theme) {
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  byId("theme").textContent = dark() ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", dark() ? "Use light colours" : "Use dark colours");
  repaint();
}

function startTheme() {
  const theme = remembered();
  setTheme(theme === "light" || theme === "dark" ? theme : null);
  system.addEventListener("change", () => setTheme(root.dataset.theme));
  byId("theme").addEventListener("click", () => {
    const chosen = dark() ? "light" : "dark";
    setTheme(chosen);
    try {
      localStorage.setItem("newfound-theme", chosen);
    } catch {
      return;
    }
  });
  byId("print").addEventListener("click", () => window.print());
  let before;
  window.addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    printing = true;
    setTheme("light");
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    setTheme(before);
  });
}
