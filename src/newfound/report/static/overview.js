// The overview, the next steps, and the findings to check.
function startOverview() {
  document.title = `${data.title} · newfound`;
  byId("title").textContent = data.title;
  fill("summary", data.summary.map((line) => make("p", {}, line)));
  fill("numbers", data.numbers.map(({ name, value, note }) =>
    make("div", {}, make("dt", {}, name), make("dd", { class: "value" }, value),
      make("dd", { class: "note" }, note))));
  fill("bar", partsBar());
  showSteps();
  startFindings();
}

const showSteps = () => fill("steps", make("h3", {}, "What to do next"), make("ol", {}, data.steps.map(step)));

function partsBar() {
  const total = data.bar.reduce((sum, part) => sum + part.texts, 0) || 1;
  const parts = data.bar.filter((part) => part.texts > 0);
  const strip = make("div", { class: "strip", "aria-hidden": "true" }, parts.map((part) => {
    const piece = make("span", { class: `part ${part.kind}` });
    piece.style.setProperty("flex-grow", String(part.texts / total));
    return piece;
  }));
  return [strip, make("ul", { class: "legend" }, parts.map((part) => make("li", {},
    make("span", { class: `swatch ${part.kind}` }),
    `${number(part.texts)} ${part.name} (${percent(part.texts / total)})`)))];
}

function step({ text, categories, code, link }) {
  return make("li", {}, link ? make("a", { href: `#${link}` }, text) : text,
    categories ? make("span", { class: "chips" }, categories.map((at) => pick(at, true))) : null,
    code ? make("code", { class: "block" }, code) : null);
}

// A button with the name of a category that selects it.
function pick(at, size) {
  const category = data.categories[at];
  return make("button", { type: "button", class: "pick", onclick: () => choose(at, "panel") },
    make("span", { class: `mark ${category.kind}` }),
    make("span", { class: "hidden" }, `${kindWord(category.kind)}: `),
    said(cut(category.name, 60)),
    size ? make("span", { class: "hint" }, number(category.size)) : null);
}

const FIRST = 5; // categories of a finding shown before "Show all"
function startFindings() {
  const checks = data.findings.filter((finding) => finding.level === "check").length;
  if (data.findings.length === 0) {
    fill("findings-list", make("p", {}, "No problems were found. It is still worth reading some border texts."));
    return;
  }
  byId("findings-title").textContent = checks ? `To check (${checks})` : "To check";
  fill("findings-list", data.findings.map(findingCard));
}

function findingCard(finding) {
  const list = make("ul", { class: "items" });
  const show = (items) => list.append(...items.map(findingItem));
  show(finding.items.slice(0, FIRST));
  const rest = finding.items.slice(FIRST);
  const more = rest.length === 0 ? null
    : make("button", { type: "button", class: "quiet more", onclick: () => {
      show(rest);
      list.children[FIRST].querySelector("button").focus();
      more.remove();
    } }, `Show all ${number(finding.items.length)}`);
  return make("article", { class: `finding ${finding.level}`, "data-kind": finding.kind },
    make("h3", {}, make("span", { class: "level" }, finding.level === "check" ? "Check" : "Note"),
      finding.title),
    finding.text ? make("p", {}, finding.text) : null,
    finding.lines.length ? make("ul", {}, finding.lines.map((line) => make("li", {}, [line].flat().map(said)))) : null,
    finding.items.length ? list : null, more,
    finding.advice ? make("p", { class: "advice" }, make("b", {}, "What to do: "), finding.advice)
      : null);
}

function findingItem([at, other, text]) {
  return make("li", {}, pick(at), other === null ? null : [" near ", pick(other)],
    make("span", { class: "why" }, text));
}

// The result of `newfound check`, if there is one: sentences, and one row per method.
function startCheck() {
  const { check } = data;
  if (!check) {
    byId("check").remove();
    return;
  }
  fill("check-body", check.sentences.map((sentence) => make("p", {}, said(sentence))),
    make("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": "Expected scores" },
      make("table", { class: "plain" },
        make("thead", {}, make("tr", {}, check.columns.map((name) => make("th", { scope: "col" }, name)))),
        make("tbody", {}, check.rows.map(([method, ...cells]) => make("tr", {},
          make("th", { scope: "row" }, said(method)), cells.map((cell) => make("td", {}, cell))))))),
    make("p", { class: "hint" }, check.how.join(" ")));
}
