// The queue: the question whose answer changes most comes first.
const passed = new Set(); // questions that the person answered with no, or left for later
let asked = null;
let placeOfId = null; // of each text

function nextQuestion() {
  if (asked) passed.add(asked.key);
  asked = review.questions.find((question) => !passed.has(question.key)) || null;
  if (!asked && review.questions.length) {
    passed.clear();
    [asked] = review.questions;
  }
  if (!asked) return say("There is no question left.");
  choose(data.categories.findIndex((category) => category.id === asked.category), "panel");
}

// The question about the chosen category, above its buttons.
function questionCard(at) {
  if (!asked || asked.category !== data.categories[at].id) return null;
  placeOfId ||= new Map(texts.text.map((_, i) => [idOf(i), i]));
  const list = asked.texts.filter((id) => placeOfId.has(id)).map((id) => placeOfId.get(id));
  const other = data.categories.findIndex((category) => category.id === asked.other);
  const yes = {
    category: () => act("Yes, accept it", "y", () => accept(at)),
    border: () => act("Those that are left belong", "y", () => accept(at)),
    pair: () => act("Yes, merge", "y", () => merge(at, asked.other)),
    split: () => act("Yes, split", "y", () => openForm("split")),
  }[asked.kind];
  const grouped = asked.kind === "split";
  return make("div", { class: "question" }, make("p", {}, make("b", {}, said(asked.text))),
    make("p", { class: "hint" }, asked.why),
    make("ul", { class: "quotes" }, list.map((i, rank) => make("li", { dir: "auto" }, asked.kind === "pair" || grouped ? null : tick(i),
      grouped ? make("span", { class: "badge" }, rank < list.length / 2 ? "1" : "2") : null,
      make("span", { class: "text" }, cut(texts.text[i], 200)),
      asked.kind === "pair" && other >= 0 ? make("span", { class: "chips" }, pick(texts.category[i])) : null))),
    make("div", { class: "buttons-row" }, yes(),
      act(asked.kind === "pair" || grouped ? "No, next" : "Later", "n", nextQuestion)));
}
