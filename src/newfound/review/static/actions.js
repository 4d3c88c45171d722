// What can be decided on one category: buttons in its panel, each with a key.
let form = null; // the open form in the panel: rename, merge, split or note

function actions(at) {
  const category = data.categories[at];
  const novel = category.status !== "known";
  const place = make("div", { id: "review-form" });
  return make("div", { class: "actions" },
    make("div", { class: "buttons-row", role: "group", "aria-label": "Decide" },
      act(novel ? (category.status === "accepted" ? "Accept again" : "Accept") : "Confirm", "a", () => accept(at)),
      novel ? act("Reject", "x", () => reject(at)) : null,
      act("Rename", "r", () => openForm("rename")),
      act("Merge", "m", () => openForm("merge")),
      act("Split", "s", () => openForm("split")),
      act("Note", "o", () => openForm("note"))),
    place);
}

// Unticked texts do not belong. Those of a question were read, and so was the list if any of its
// texts is unticked; otherwise the typical and border texts count as read.
function accept(at) {
  const category = data.categories[at];
  const listedHere = byId("panel").querySelectorAll(".all-texts .tick").length;
  const own = ownTexts(at);
  const inQuestion = new Set(asked?.category === category.id && ["category", "border"].includes(asked.kind) ? asked.texts : []);
  const wrong = own.filter((i) => unticked.has(i));
  const readList = wrong.some((i) => !inQuestion.has(idOf(i)));
  const seen = own.filter((i, rank) => ((readList && rank < listedHere) || inQuestion.has(idOf(i))) && !unticked.has(i));
  const decisions = [];
  if (wrong.length) decisions.push({ decision: "nowhere", texts: wrong.map(idOf) });
  decisions.push(seen.length ? { decision: "accept", category: category.id, texts: seen.map(idOf) } : { decision: "accept", category: category.id });
  decide(decisions, `Accepted “${category.name}”${wrong.length ? `; ${plural(wrong.length, "text fits", "texts fit")} nowhere` : ""}.`)
    .then((done) => done && unticked.clear());
}

function ownTexts(at) {
  const own = [];
  for (let i = 0; i < count; i++) if (texts.category[i] === at && (!hits || hits[i])) own.push(i);
  return own.sort((a, b) => texts.probability[b] - texts.probability[a]);
}

function reject(at) {
  const { id, name } = data.categories[at];
  decide([{ decision: "reject", category: id }], `Rejected “${name}”; its texts are free again.`);
}

function merge(at, into) {
  const target = data.categories.find((category) => category.id === into);
  return decide([{ decision: "merge", categories: [data.categories[at].id], into }],
    `Merged “${data.categories[at].name}” into “${target.name}”.`);
}

function openForm(name) {
  const at = chosen;
  if (at < 0) return say("Select a category first.", true);
  const place = byId("review-form");
  const builders = { rename: renameForm, merge: mergeForm, split: splitForm, note: noteForm };
  form = name;
  place.replaceChildren(...[builders[name](at)].flat());
  place.querySelector("input, select, button")?.focus();
}

function closeForm() {
  form = null;
  hidePreview();
  byId("review-form")?.replaceChildren();
  byId("panel").focus({ preventScroll: true });
}

function textForm(label, value, save, run) {
  const input = make("input", { type: "text", value, "aria-label": label, maxlength: 200 });
  return make("form", { class: "one-line", onsubmit: (event) => {
    event.preventDefault();
    if (input.value.trim()) run(input.value.trim());
  } }, input, make("button", { type: "submit" }, save), make("button", { type: "button", class: "quiet", onclick: closeForm }, "Cancel"));
}

const renameForm = (at) => textForm("New name", data.categories[at].name, "Rename", async (name) => {
  if (await decide([{ decision: "rename", category: data.categories[at].id, name }], `Renamed to “${name}”.`)) form = null;
});

const noteForm = (at) => textForm("Note", "", "Save", async (text) => {
  if (await decide([{ decision: "note", category: data.categories[at].id, text }], "Noted.")) form = null;
});

function mergeForm(at) {
  const select = targets("Merge into", alike(at), [at]);
  const merged = make("button", { type: "button", onclick: () => select.value && merge(at, select.value) }, "Merge");
  return make("div", { class: "one-line" }, select, merged, make("button", { type: "button", class: "quiet", onclick: closeForm }, "Cancel"));
}

// A proposed split: two parts, shown on the map and by their first texts.
function splitForm(at) {
  const place = make("div", { class: "split", role: "status" }, "Computing a proposal …");
  const { id } = data.categories[at];
  ask("/split", { category: id }).then(([status, value]) => {
    if (form !== "split" || data.categories[chosen]?.id !== id) return;
    if (status !== 200) return place.replaceChildren(value.error);
    const place_ = new Map();
    for (let i = 0; i < count; i++) if (texts.category[i] === at) place_.set(idOf(i), i);
    const parts = value.parts.map((ids) => ids.filter((one) => place_.has(one)).map((one) => place_.get(one)));
    const inputs = parts.map((_, number_) => make("input", { type: "text", maxlength: 200, placeholder: "Name from its keywords",
      "aria-label": `Name of part ${number_ + 1}` }));
    const save = make("button", { type: "button", class: "main", onclick: async () => {
      const parts_ = value.parts.map((ids, number_) => ({ texts: ids, ...(inputs[number_].value.trim() ? { name: inputs[number_].value.trim() } : {}) }));
      if (await decide([{ decision: "split", category: id, parts: parts_ }], "Split into two categories.")) {
        form = null;
        hidePreview();
      }
    } }, "Split");
    place.replaceChildren(make("p", { class: "hint" }, "The parts differ most by the model's features; the map shows the second one."),
      make("div", { class: "parts" }, parts.map((list, number_) => make("div", {},
        make("h4", {}, `Part ${number_ + 1}: ${plural(list.length, "text")}`), inputs[number_],
        make("ul", { class: "quotes" }, list.slice(0, 6).map((i) => make("li", { dir: "auto" }, make("span", { class: "text" }, cut(texts.text[i], 160)))))))),
      make("div", { class: "one-line" }, save, make("button", { type: "button", class: "quiet", onclick: closeForm }, "Cancel")));
    showPreview(parts[1]);
    inputs[0].focus({ preventScroll: true });
  }).catch(() => place.replaceChildren("The server does not answer."));
  return place;
}

let beforePreview = null;
function showPreview(list) {
  beforePreview = { hits, hitsOf };
  hits = texts.text.map(() => 0);
  list.forEach((i) => (hits[i] = 1));
  hitsOf = data.categories.map((_, at) => list.filter((i) => texts.category[i] === at).length);
  drawMap();
}

function hidePreview() {
  if (!beforePreview) return;
  ({ hits, hitsOf } = beforePreview);
  beforePreview = null;
  drawMap();
}
