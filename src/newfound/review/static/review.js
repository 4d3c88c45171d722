// The review: the report with decisions.
const KEYS = [["n", "next question", () => nextQuestion()], ["u", "undo the last decision", () => undo()],
  ["a", "accept the category, with its ticked texts", () => chosen >= 0 && accept(chosen)],
  ["x", "reject it", () => chosen >= 0 && data.categories[chosen].status !== "known" && reject(chosen)],
  ["r", "rename it", () => openForm("rename")], ["m", "merge it", () => openForm("merge")],
  ["s", "split it", () => openForm("split")], ["o", "write a note on it", () => openForm("note")],
  ["y", "yes, to the question", () => byId("panel").querySelector(".question [data-key=y]")?.click()],
  ["j", "next category in the table", () => step_(1)], ["k", "previous category", () => step_(-1)],
  ["/", "search the texts", () => byId("map-search").focus()], ["b", "choose the texts that the search found", () => chooseFound()],
  ["l", "lasso on the map (with a pointer)", () => setLasso(!lassoing)], ["?", "show or hide these keys", () => toggleKeys()]];

function step_(by) {
  const rows = [...byId("table-body").children].filter((row) => !row.hidden).map((row) => Number(row.dataset.at));
  if (!rows.length) return;
  choose(rows[(rows.indexOf(chosen) + by + rows.length) % rows.length], "panel");
}

function chooseFound() {
  if (!hits || beforePreview) return say("Search the texts first, with /.", true);
  showBulk([...Array(count).keys()].filter((i) => hits[i]), "found");
}

function undo(line = review.last) {
  if (line === null) return say("There is nothing to undo.");
  const text = review.lines.find((one) => one.line === line)?.text ?? "";
  decide([{ decision: "undo", line }], `Undone: ${text.replace(/ \([^()]*\)$/, "")}.`);
}

function toggleKeys() {
  const list = byId("review-keys");
  list.hidden = !list.hidden;
  byId("review-help").setAttribute("aria-expanded", String(!list.hidden));
}

function showReview() {
  const { decided: done, all, reviewed } = review.progress;
  byId("review-progress").textContent = `${number(done)} of ${number(all)} novel categories decided, ${plural(reviewed, "text")} read`;
  byId("review-meter").max = Math.max(all, 1);
  byId("review-meter").value = done;
  byId("review-undo").disabled = review.last === null;
  byId("review-undo").title = review.undo || "";
  if (asked && !review.questions.some((question) => question.key === asked.key)) asked = null;
  byId("review-next").disabled = review.questions.length === 0;
  fill("decisions-body",
    review.refitted ? make("p", { class: "warnings" }, `This run was refitted into ${review.refitted}; decide there.`) : null,
    review.problems.length ? make("ul", { class: "warnings" }, review.problems.map((text) => make("li", {}, said(text)))) : null,
    review.lines.length ? make("ol", { class: "log", reversed: true }, review.lines.map(({ line, text, undone }) =>
      make("li", { value: line, class: undone ? "undone" : null }, said(text), " ",
        undone ? make("span", { class: "hint" }, "(undone)")
          : make("button", { type: "button", class: "quiet", onclick: () => undo(line) }, "Undo"))))
      : make("p", { class: "hint" }, "Nothing was decided since the last fit."));
}

function startReview() {
  document.querySelector("#overview").after(make("section", { id: "decisions", "aria-labelledby": "decisions-title" },
    make("h2", { id: "decisions-title" }, "Decisions since the last fit"), make("div", { id: "decisions-body" })));
  byId("nav").prepend(make("a", { href: "#decisions" }, "Decisions"));
  fill("review-keys", make("dl", { class: "key-help" }, KEYS.map(([key, name]) => make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, name)))));
  byId("review-next").addEventListener("click", nextQuestion);
  byId("review-undo").addEventListener("click", () => undo());
  byId("review-help").addEventListener("click", toggleKeys);
  added.panel = (at) => [questionCard(at), actions(at)];
  added.list = (list, named) => bulkTools(list, named);
  added.tick = tick;
  startLasso();
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=checkbox]), select, textarea, form");
    if (event.key === "Escape" && form) return closeForm();
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const found = KEYS.find(([key]) => key === event.key);
    if (!found) return;
    event.preventDefault();
    found[2]();
  });
  const choosePlain = choose;
  choose = (at, where) => { // another category: its own ticks and forms
    if (at !== chosen) {
      unticked.clear();
      bulk = null;
      form = null;
      hidePreview();
    }
    choosePlain(at, where);
  };
  showReview();
  showPanel();
  setInterval(follow, 2500);
  document.addEventListener("visibilitychange", follow);
}

startReview();
if (location.hash === "#question") nextQuestion();
root.dataset.review = "ready";
