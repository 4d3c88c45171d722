// All texts of a category: to search, to read in portions, and to download as a table.
const MORE = 40; // texts listed at a time

function allTexts(at) {
  const own = [];
  for (let i = 0; i < count; i++) if (texts.category[i] === at && (!hits || hits[i])) own.push(i);
  own.sort((a, b) => texts.probability[b] - texts.probability[a]);
  const title = hits ? `Its matching texts (${number(own.length)})`
    : texts.sampled ? `Its texts in the sample (${number(own.length)} of ${number(data.categories[at].size)})`
      : `All its texts (${number(own.length)})`;
  return block(title, textList(own, data.categories[at].name, false));
}

// A list of texts with a search field and a download; `named` shows the category of each.
function textList(list, name, named) {
  const frame = make("div", { class: "all-texts" });
  const items = make("div", {});
  let matching = list;
  const show = () => items.replaceChildren(listed(matching, named));
  const status = make("span", { class: "hint", role: "status" });
  let wait;
  const search = make("input", { type: "search", placeholder: "Search these texts …", autocomplete: "off",
    "aria-label": "Search these texts", oninput: (event) => {
      clearTimeout(wait);
      wait = setTimeout(() => {
        const words = event.target.value.trim().toLowerCase();
        matching = words === "" ? list : list.filter((i) => lowered(i).includes(words));
        status.textContent = words === "" ? "" : `${number(matching.length)} of ${number(list.length)}`;
        show();
      }, 80);
    } });
  const save = make("button", { type: "button", class: "quiet", onclick: () => download(matching, name) }, "Download");
  show();
  frame.append(...[added.list(list, named)].filter(Boolean));
  if (list.length > 5) frame.append(make("div", { class: "list-tools" }, search, status, save));
  frame.append(items);
  if (texts.limit && list.length) {
    frame.append(make("p", { class: "hint" }, `Here and in the download, texts are truncated to ${number(texts.limit)} characters; assignments.csv has them whole.`));
  }
  return frame;
}

function listed(list, named) {
  const items = make("ul", { class: "quotes" });
  const more = make("button", { type: "button", class: "quiet more" }, "Show more");
  const add = () => {
    const from = items.childElementCount;
    items.append(...list.slice(from, from + MORE).map((i) => make("li", { dir: "auto" }, added.tick(i),
      make("span", { class: "text" }, texts.text[i]),
      named ? make("span", { class: "chips" }, pick(texts.category[i])) : null)));
    more.hidden = items.childElementCount >= list.length;
  };
  more.addEventListener("click", add);
  add();
  return make("div", {}, items, more);
}

const idOf = (i) => (texts.ids ? texts.ids[i] : String(i + 1));
const valueOf = (column, i) => column.values[column.of[i]] ?? "";

// An apostrophe protects a cell that a spreadsheet would run as a formula, as in our CSV files.
const FORMULA = /^'*(?:\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])/;
function csvCell(value) {
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvOf(list) {
  const columns = [...texts.columns, ...(texts.time ? [texts.time] : [])];
  const rows = list.map((i) => {
    const category = data.categories[texts.category[i]];
    const share = texts.probability[i];
    return [idOf(i), texts.text[i], category.name, category.kind, share < 0 ? "" : String(share / 100),
      ...columns.map((column) => valueOf(column, i))];
  });
  const head = ["id", "text", "category", "kind", "probability", ...columns.map((column) => column.name)];
  return [head, ...rows].map((row) => row.map(csvCell).join(",")).join("\n") + "\n";
}

function download(list, name) {
  const address = URL.createObjectURL(new Blob(["\ufeff", csvOf(list)], { type: "text/csv" }));
  const plain = name.normalize("NFKD").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60);
  const link = make("a", { href: address, download: `${plain || "texts"}.csv` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
