// The table of categories: sorted by a heading, filtered by words, kind and findings.
const COLUMNS = [
  { key: "name", name: "Category", down: false, of: (c) => c.name.toLowerCase() },
  { key: "kind", name: "Kind", down: false, of: (c) => (c.kind === "novel" ? 0 : 1) },
  { key: "size", name: "Texts", down: true, of: (c) => c.size },
  { key: "labelled", name: "Labelled by you", down: true, of: (c) => c.labelled },
  { key: "confidence", name: "Confidence", down: true, of: (c) => c.confidence ?? -1 },
  { key: "fit", name: "Fit", down: false, of: (c) => c.fit ?? Infinity },
  { key: "nearest", name: "Nearest category", down: false, of: (c) => c.nearestDistance ?? Infinity },
  { key: "flags", name: "To check", down: true, of: (c) => c.flags.length },
];
const KINDS = [["all", "All"], ["known", "Known"], ["novel", "Novel"]];
const tableState = { sort: "size", down: true, kind: "all", words: "", flagged: false };
let tableRows = [];

function startTable() {
  fill("table-head", COLUMNS.map((column) => make("th", { scope: "col", "data-key": column.key },
    make("button", { type: "button", onclick: () => sortTable(column.key) }, column.name))));
  fill("table-sort", COLUMNS.map((column) => make("option", { value: column.key }, column.name)));
  fill("table-kinds", KINDS.map(([kind, name]) => make("button", {
    type: "button", "data-kind": kind, onclick: () => { tableState.kind = kind; filterTable(); },
  }, name)));
  byId("table-sort").addEventListener("change", (event) => sortTable(event.target.value));
  byId("table-filter").addEventListener("input", (event) => {
    tableState.words = event.target.value.trim().toLowerCase();
    filterTable();
  });
  byId("table-flagged").addEventListener("change", (event) => {
    tableState.flagged = event.target.checked;
    filterTable();
  });
  drawTable();
}

function drawTable() {
  data.categories.forEach((category, at) => {
    category.flags = data.findings.filter((finding) => finding.items.some((item) => item[0] === at))
      .map((finding) => WARNING[finding.kind] || "Check");
    const texts = [...category.examples, ...category.border]
      .map((text) => (Array.isArray(text) ? text[0] : text));
    category.haystack = [category.name, ...category.keywords, ...texts].join("\n").toLowerCase();
  });
  const most = Math.max(1, ...data.categories.map((category) => category.size));
  data.categories.forEach((category) => (category.width = category.size / most));
  tableRows = makeRows(data.categories);
  showOrder();
  filterTable();
}

const makeRows = reusing((category) => [category.id, category.name, category.kind, category.status,
  category.keywords.slice(0, 6), category.size, category.share, category.width, category.volume,
  category.labelled, category.confidence, category.fit, data.categories[category.nearest]?.name,
  category.nearestDistance, category.flags], tableRow);

function tableRow(category) {
  const bar = make("span", { class: `bar ${category.kind}`, "aria-hidden": "true" });
  bar.style.setProperty("width", `${100 * category.width}%`);
  const cell = (name, ...children) =>
    make("td", { "data-name": name, class: children[0] === "–" ? "none" : null }, ...children);
  const nearest = data.categories[category.nearest];
  const row = make("tr", { onclick: (event) => {
    if (!event.target.closest("button")) choose(Number(row.dataset.at), "");
  } },
  make("th", { scope: "row" },
    make("button", { type: "button", class: "name",
      onclick: () => choose(Number(row.dataset.at), "panel") }, said(category.name)),
    make("span", { class: "hint words" },
      category.keywords.slice(0, 6).flatMap((word, i) => [i ? ", " : "", said(word)]))),
  cell("Kind", badge(category.kind), decided(category)),
  cell("Texts", make("span", { class: "amount" }, number(category.size),
    make("span", { class: "hint" }, ` ${percent(category.share)}`)),
  make("span", { class: "track", "aria-hidden": "true" }, bar), sparkline(category)),
  cell("Labelled by you", category.labelled ? number(category.labelled) : "–"),
  cell("Confidence", percent(category.confidence)),
  cell("Fit", category.fit === null ? "–" : category.fit.toFixed(2)),
  cell("Nearest", nearest ? [said(cut(nearest.name, 60)),
    make("span", { class: "hint" }, ` ${distance(category.nearestDistance)}`)] : "–"),
  cell("To check", category.flags.length
    ? make("span", {}, category.flags.map((flag) => make("span", { class: "flag" }, flag))) : "–"));
  return row;
}

// The volume over time, as a line under the size.
function sparkline(category) {
  if (category.volume.length < 2) return null;
  const most = Math.max(1, ...category.volume);
  const last = category.volume.length - 1;
  const points = category.volume.map((texts_, at) => `${(90 * at) / last},${17 - (16 * texts_) / most}`);
  return svg("svg", { class: "spark", width: 90, height: 18, "aria-hidden": "true" },
    svg("polyline", { points: points.join(" ") }));
}

// How many texts of each category match, while something narrows the map.
function showHits() {
  tableRows.forEach((row, at) => {
    const size = data.categories[at].size;
    const amount = row.querySelector(".amount").firstChild;
    const shown = hits ? `${number(hitsOf[at])} of ${number(size)}` : number(size);
    if (amount.data !== shown) amount.data = shown; // else its row would be laid out again
  });
}

function sortTable(key) {
  const column = COLUMNS.find((one) => one.key === key);
  tableState.down = tableState.sort === key ? !tableState.down : column.down;
  tableState.sort = key;
  showOrder();
}

function showOrder() {
  const { of } = COLUMNS.find((column) => column.key === tableState.sort);
  const sign = tableState.down ? -1 : 1;
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
  const order = data.categories.map((_, at) => at).sort((a, b) =>
    sign * compare(of(data.categories[a]), of(data.categories[b]))
      || data.categories[b].size - data.categories[a].size);
  arrange(byId("table-body"), order.map((at) => tableRows[at]));
  for (const head of byId("table-head").children) {
    if (head.dataset.key !== tableState.sort) head.removeAttribute("aria-sort");
    else head.setAttribute("aria-sort", tableState.down ? "descending" : "ascending");
  }
  byId("table-sort").value = tableState.sort;
}

function filterTable() {
  const { kind, words, flagged } = tableState;
  let shown = 0;
  data.categories.forEach((category, at) => {
    const there = (kind === "all" || category.kind === kind)
      && (!flagged || category.flags.length > 0) && category.haystack.includes(words);
    tableRows[at].hidden = !there;
    shown += there;
  });
  for (const button of byId("table-kinds").children) {
    button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
  }
  const total = data.categories.length;
  byId("table-count").textContent = shown === total
    ? plural(total, "category", "categories") : `${number(shown)} of ${number(total)} categories`;
}

function markRow(at) {
  tableRows.forEach((row, i) => {
    row.classList.toggle("chosen", i === at);
    if (i === at) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  });
}
