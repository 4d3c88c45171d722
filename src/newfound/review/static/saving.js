// Saving decisions: every one is on disk before the page shows it.
let review = data.review;
const token = new URLSearchParams(location.search).get("token") || "";
let saving = false;
let outsideTexts = new Set(texts.outside);

async function ask(path, body) {
  const answer = await fetch(path, {
    method: body ? "POST" : "GET",
    headers: { "x-newfound-token": token, ...(body ? { "content-type": "application/json" } : {}) },
    body: body ? JSON.stringify(body) : undefined,
  });
  return [answer.status, await answer.json()];
}

function say(message, problem) {
  const status = byId("review-status");
  status.textContent = message;
  status.classList.toggle("problem", Boolean(problem));
}

// Save decisions, all or none. Returns whether they are saved.
async function decide(decisions, done) {
  if (saving) return false;
  saving = true;
  root.dataset.saving = "true";
  const begun = performance.now();
  try {
    const [status, value] = await ask("/decide", { decisions, expected: review.digest });
    if (status === 200) {
      update(value);
      say(done);
      root.dataset.shown = String(Math.round(performance.now() - begun));
      return true;
    }
    if (status === 409) {
      update(value);
      say("Your decision was not saved: others were made in the meantime, which are shown now. Decide again.", true);
    } else say(`Not saved: ${value.error}`, true);
  } catch (error) {
    say("Not saved: the server does not answer. Start `newfound review` again.", true);
    console.info(error);
  } finally {
    saving = false;
    delete root.dataset.saving;
  }
  return false;
}

// What refers to categories by position, with ids: positions change with decisions.
const idAt = (at) => data.categories[at]?.id ?? null;
const byIds = {
  findings: data.findings.map((finding) => finding.items.map(([at, other, text]) => [idAt(at), idAt(other), text])),
  steps: data.steps.map((step_) => step_.categories?.map(idAt)),
  matching: data.matching?.categories.map(idAt),
};

function placeAgain() {
  const place = new Map(data.categories.map(({ id }, at) => [id, at]));
  data.findings.forEach((finding, i) => {
    finding.items = byIds.findings[i].filter(([id]) => place.has(id)).map(([id, other, text]) => [place.get(id), place.get(other) ?? null, text]);
  });
  data.steps.forEach((step_, i) => {
    if (step_.categories) step_.categories = byIds.steps[i].filter((id) => place.has(id)).map((id) => place.get(id));
  });
  if (data.matching) data.matching.categories = byIds.matching.map((id) => place.get(id) ?? -1);
  startFindings();
  showSteps();
}

// The sections out of sight are laid out after the frame that shows a decision.
function postpone() {
  const sections = [...document.querySelectorAll("#main > section:not(#map)")].filter((section) => {
    const { top, bottom } = section.getBoundingClientRect();
    return top > innerHeight || bottom < 0;
  });
  sections.forEach((section) => section.style.setProperty("content-visibility", "hidden"));
  requestAnimationFrame(() => setTimeout(() =>
    sections.forEach((section) => section.style.removeProperty("content-visibility"))));
}

// Show a new state of the categories and of the review.
function update(value) {
  if (value.review.run !== review.run) {
    location.reload(); // another run is in the folder
    return;
  }
  postpone();
  hidePreview(); // of a split: the panel is shown anew, and counts are of what was searched
  const chosenId = data.categories[chosen]?.id;
  const same = (one, two) => one.length === two.length && one.every((each, i) => each === two[i]);
  const ids = (list) => list.map(({ id, kind }) => `${id} ${kind}`);
  // Most decisions move no text; then the map stays as it is.
  const moved = !same(ids(value.categories), ids(data.categories)) || !same(value.category, texts.category);
  const renamed = !same(value.categories.map(({ name }) => name), data.categories.map(({ name }) => name));
  review = value.review;
  data.categories = value.categories;
  texts.category = value.category;
  outsideTexts = new Set(value.outside);
  byId("title").textContent = value.title;
  if (moved) {
    placeAgain();
    prepareMap();
  }
  hitsOf = hits && data.categories.map(() => 0);
  hits?.forEach((hit, i) => (hitsOf[texts.category[i]] += hit));
  drawTable();
  showHits();
  drawEach();
  if (moved || renamed) {
    startTree();
    showLegend();
  }
  chosen = data.categories.findIndex((category) => category.id === chosenId);
  markRow(chosen);
  showReview();
  showPanel();
  if (moved || renamed) drawMap();
}

// Decisions of other pages and programs are shown within seconds.
async function follow() {
  if (document.hidden || saving) return;
  try {
    const [status, value] = await ask("/digest");
    if (status !== 200 || saving) return;
    if (value.run !== review.run) location.reload();
    else if (value.digest !== review.digest) {
      const [, state] = await ask("/state");
      if (saving) return;
      update(state);
      say("Decisions that were made elsewhere are shown now.");
    }
  } catch {
    say("The server does not answer. Start `newfound review` again.", true);
  }
}
