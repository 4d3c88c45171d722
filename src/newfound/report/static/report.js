// Start every section; if one fails, it shows the error and the others still work.
const PARTS = [
  ["overview", "Overview", startOverview],
  ["findings", "To check", null],
  ["check", "What to expect", startCheck],
  ["map", "Map", null],
  ["categories", "Categories", startTable],
  ["map", null, startMap],
  ["tree", "Groups", startTree],
  ["each", "Each category", startEach],
  ["estimate", "How many", startEstimate],
  ["matching", "Matching", startMatching],
  ["training", "Training", startTraining],
  ["settings", "Settings", startSettings],
];

function startSettings() {
  const { command, report, json, seconds, newfound } = data.settings;
  const copied = (lines) => make("button", { type: "button", class: "quiet", onclick: async (event) => {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(lines);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy the text";
    }
  } }, "Copy");
  const text = json.join("\n");
  fill("settings-body",
    command ? block("Command of this run", make("code", { class: "block" }, command)) : null,
    block("Command that writes this report", make("code", { class: "block" }, report)),
    seconds.length ? block("Time", make("ul", { class: "seconds" }, seconds.map(([name, value]) =>
      make("li", {}, said(measureWords(name)), make("b", {}, `${value.toFixed(1)} s`))))) : null,
    make("details", { class: "numbers-of", id: "settings-json" }, make("summary", {}, "Settings, seed and versions (from run.json)"),
      make("div", {}, copied(text), make("pre", { tabindex: "0" }, text))));
  fill("footer", make("p", { class: "hint" }, `Written by newfound ${newfound}. This file is self-contained and loads nothing from a network.`));
}

function startNav() {
  fill("nav", PARTS.filter(([id, name]) => name && (id !== "check" || data.check)
    && (id !== "tree" || data.categories[0]?.groups.length)).map(([id, name]) => make("a", { href: `#${id}` }, name)));
}

startTheme();
startNav();
for (const [id, , start] of PARTS) {
  if (!start) continue;
  try {
    start();
  } catch (error) {
    console.error(error);
    byId(id).append(make("p", { class: "hint" }, `This section could not be drawn: ${error.message}`));
  }
}
root.dataset.ready = String(Math.round(performance.now()));
