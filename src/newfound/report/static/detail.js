// The description of one category, in the panel beside the map and in its own section.
function facts(category) {
  const rows = [
    ["Texts", `${number(category.size)} (${percent(category.share)} of all)`],
    category.kind === "known"
      ? ["Labelled and assigned", `${number(category.labelled)} labelled by you, ${number(category.pile)} assigned`]
      : null,
    ["Confidence", category.confidence === null ? "–"
      : `${percent(category.confidence)} on average; ${percent(category.unsure)} of texts below 50%`],
    category.fit === null ? null : ["Fit", `${category.fit.toFixed(2)} on average`
      + (category.fitsNowhere ? `; ${plural(category.fitsNowhere, "text fits", "texts fit")} nowhere` : "")],
    category.distance === null ? null
      : ["Distance to your labelled texts", distance(category.distance)],
  ];
  return make("dl", { class: "facts" }, rows.filter(Boolean).map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

function near(category) {
  const lines = [];
  if (category.nearest >= 0) {
    lines.push(make("li", {}, pick(category.nearest),
      make("span", { class: "why" }, `nearest category, at distance ${distance(category.nearestDistance)}`)));
  }
  for (const at of category.near.filter((at) => at !== category.nearest).slice(0, 5)) {
    lines.push(make("li", {}, pick(at), make("span", { class: "why" }, "has this one as its nearest")));
  }
  for (const [at, texts] of category.moved) {
    lines.push(make("li", {}, pick(at), make("span", { class: "why" },
      `the model predicts it for ${plural(texts, "text")} that you labelled as this one`)));
  }
  return lines.length ? block("Similar categories", make("ul", { class: "items" }, lines)) : null;
}

function warningsOf(at) {
  const lines = data.findings.flatMap((finding) => finding.items
    .filter((item) => item[0] === at)
    .map(([, other, text]) => make("li", {}, make("b", {}, `${WARNING[finding.kind] || "Check"}: `),
      text, other === null ? null : [" (", said(cut(data.categories[other].name, 60)), ")"])));
  return lines.length ? make("ul", { class: "warnings" }, lines) : null;
}

const WARNING = {
  same: "May be known", split: "May be part of a known one", absent: "No unlabelled texts", two: "May be two", doubted: "Labels doubted",
  far: "Unlike your labels", outside: "Fit nowhere", mixed: "Low confidence", dominant: "Very large", small: "Very small",
};

const block = (title, ...children) =>
  make("div", { class: "block" }, make("h4", {}, title), ...children);

function keywords(category) {
  if (category.keywords.length === 0) return null;
  return make("ul", { class: "keywords", "aria-label": "Keywords" },
    category.keywords.map((word) => make("li", {}, said(word))));
}

const quotes = (title, texts, kind) =>
  texts.length ? block(title, make("ul", { class: `quotes ${kind}` }, texts.map(quote))) : null;

function about(at) {
  const category = data.categories[at];
  return [keywords(category), warningsOf(at), facts(category),
    quotes("Typical texts", category.examples, "typical"),
    quotes("Border texts", category.border, "border"), near(category), overTime(category)];
}

// Texts per period as bars; the numbers are in a table.
function overTime(category) {
  if (!texts.time || category.volume.length === 0) return null;
  const most = Math.max(1, ...category.volume);
  const [width, height] = [10 * category.volume.length, 60];
  const chart = svg("svg", { class: "volume", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
    "aria-label": `Texts per ${texts.time.unit}: ${category.volume.join(", ")}` },
  category.volume.map((texts_, at) => svg("rect", { class: category.kind, x: 10 * at + 1, width: 8,
    y: height - (height * texts_) / most, height: (height * texts_) / most },
  svg("title", {}, `${texts.time.values[at]}: ${texts_}`))));
  const { values } = texts.time;
  return block(`Texts per ${texts.time.unit}`, chart,
    make("p", { class: "ends hint" }, make("span", {}, values[0]), make("span", {}, `at most ${number(most)}`), make("span", {}, values[values.length - 1])),
    numbersOf(category.volume.map((texts_, at) => [values[at], texts_]), [texts.time.unit, "Texts"]));
}

// One section per category. There can be many, so each is filled when it is opened.
let eachParts = [];
function startEach() {
  drawEach();
  const setAll = (open) => eachParts.forEach((part, at) => {
    if (open) fillPart(part, at);
    part.open = open;
  });
  const all = byId("each-all");
  all.addEventListener("click", () => {
    const open = all.getAttribute("aria-pressed") !== "true";
    all.setAttribute("aria-pressed", String(open));
    all.textContent = open ? "Close all" : "Open all";
    setAll(open);
  });
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...eachParts, byId("settings-json")].filter((part) => part && !part.open);
    setAll(true);
    closed.forEach((part) => (part.open = true));
  });
  window.addEventListener("afterprint", () => closed.forEach((part) => (part.open = false)));
}

// A part that is open, or was, shows more than its heading.
const makeParts = reusing((category) => [category.id, category.name, category.kind, category.size,
  category.keywords.slice(0, 4)], eachPart, (part) => !part.open && part.childElementCount === 1);

function eachPart(category) {
  const part = make("details", { class: "each" },
    make("summary", {}, badge(category.kind), make("span", { class: "name" }, said(category.name)),
      make("span", { class: "hint" }, plural(category.size, "text")),
      make("span", { class: "hint words" },
        category.keywords.slice(0, 4).flatMap((word, i) => [i ? ", " : "", said(word)]))));
  part.addEventListener("toggle", () => part.open && fillPart(part, Number(part.dataset.at)));
  return part;
}

function drawEach() {
  eachParts = makeParts(data.categories);
  eachParts.forEach((part, at) => (part.id = `category-${at}`));
  const order = data.categories.map((_, at) => at).sort(byKindAndSize);
  arrange(byId("each-list"), order.map((at) => eachParts[at]));
}

function fillPart(part, at) {
  if (part.childElementCount === 1) {
    part.append(make("div", { class: "about" }, ...about(at).filter(Boolean), allTexts(at)));
  }
}

const byKindAndSize = (a, b) => {
  const [one, two] = [data.categories[a], data.categories[b]];
  return (one.kind === "novel" ? 0 : 1) - (two.kind === "novel" ? 0 : 1) || two.size - one.size;
};
