// Ticks in lists of texts, and what can be done with many texts at once.
const unticked = new Set();
let bulk = null; // texts that were chosen by search or lasso, or null

const collator = new Intl.Collator("en");
const TARGETS = 8; // categories offered first, because they are alike

// A list of categories to choose from, those that are alike first.
function targets(label, near, without) {
  const others = data.categories.map((_, at) => at).filter((at) => !without.includes(at));
  const first = near.filter((at) => others.includes(at)).slice(0, TARGETS);
  const rest = others.filter((at) => !first.includes(at))
    .sort((a, b) => collator.compare(data.categories[a].name, data.categories[b].name));
  const option = (at) => make("option", { value: data.categories[at].id },
    `${cut(data.categories[at].name, 60)} (${data.categories[at].kind})`);
  return make("select", { "aria-label": label }, make("option", { value: "" }, `${label} …`),
    first.length ? make("optgroup", { label: "Alike" }, first.map(option)) : null,
    make("optgroup", { label: "All" }, rest.map(option)));
}

function alike(at) {
  const category = data.categories[at];
  const group = category.groups[0];
  return [...new Set([category.nearest, ...category.near, ...category.moved.map(([other]) => other),
    ...(group ? data.categories.map((_, other) => other).filter((other) => data.categories[other].groups[0] === group) : [])])]
    .filter((other) => other >= 0 && other !== at);
}

const act = (name, key, run, extra) => make("button", { type: "button", "data-key": key, onclick: run, ...extra },
  name, key ? [" ", make("kbd", {}, key)] : null);

// In the panel of a category, what is unticked does not belong; elsewhere, what is ticked is chosen.
function bulkTools(list, named) {
  const meant = () => (named ? list.filter((i) => !unticked.has(i)) : list.filter((i) => unticked.has(i)));
  const say_ = make("span", { class: "hint", role: "status" });
  const need = () => {
    const found = meant();
    if (!found.length) say(named ? "No text is ticked." : "Untick the texts that do not belong here first.", true);
    return found;
  };
  const ids = (found) => found.map(idOf);
  const owners = () => [...new Set(meant().map((i) => texts.category[i]))];
  const near = list.length ? [...new Set([texts.category[list[0]], ...alike(texts.category[list[0]])])] : [];
  const select = targets("Move to", near, named ? [] : [chosen]);
  select.addEventListener("change", async () => {
    const found = need();
    if (select.value && found.length
      && await decide([{ decision: "move", texts: ids(found), into: select.value }], `Moved ${plural(found.length, "text")}.`)) clearBulk();
    select.value = "";
  });
  const nowhere = act("Fit nowhere", "", async () => {
    const found = need();
    if (found.length
      && await decide([{ decision: "nowhere", texts: ids(found) }], `${plural(found.length, "text fits", "texts fit")} nowhere.`)) clearBulk();
  });
  const apart = act("New category", "", async () => {
    const found = need();
    if (!found.length) return;
    if (owners().length > 1) {
      say("The texts are of several categories: move them into one first.", true);
    } else if (await decide([{ decision: "split", category: data.categories[owners()[0]].id, parts: [{ texts: ids(found) }] }],
      `${plural(found.length, "text is", "texts are")} a new category.`)) clearBulk();
  });
  const note = () => {
    const amount = meant().length;
    say_.textContent = named ? `${number(amount)} of ${number(list.length)} ticked` : amount ? `${number(amount)} unticked` : "Untick what does not belong here.";
    root.dataset.meant = String(amount);
  };
  note();
  const tools = make("div", { class: "bulk" }, say_, select, nowhere, apart);
  tools.addEventListener("ticked", note);
  return tools;
}

function tick(i) {
  const box = make("input", { type: "checkbox", class: "tick", "aria-label": "Belongs", onchange: (event) => {
    if (event.target.checked) unticked.delete(i);
    else unticked.add(i);
    byId("panel").querySelectorAll(".bulk").forEach((tools) => tools.dispatchEvent(new Event("ticked")));
  } });
  box.checked = !unticked.has(i);
  return [box, outsideTexts.has(i) ? make("span", { class: "flag" }, "Fits nowhere") : null];
}

function clearBulk() {
  unticked.clear();
  bulk = null;
  showPanel();
}

function showBulk(list, where) {
  unticked.clear();
  bulk = list;
  if (chosen >= 0) choose(-1, "");
  unticked.clear();
  bulk = list;
  fill("panel", make("div", { class: "panel-head" }, make("h3", {}, `${plural(list.length, "text")} ${where}`),
    make("button", { type: "button", class: "quiet", onclick: clearBulk }, "Close")),
  list.length ? textList(list, where, true) : make("p", {}, "No text was chosen."));
  byId("panel").focus({ preventScroll: true });
}
