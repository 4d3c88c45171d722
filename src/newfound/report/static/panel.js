// Pointer and keyboard input of the map, and the panel beside it.
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function startMap() {
  canvas = byId("map-canvas");
  pen = canvas.getContext("2d");
  prepareMap();
  const left = texts.sampled
    ? `The map shows a sample of ${number(count)} of the ${number(texts.total)} texts, with some of every category. `
    : "";
  const cutNote = texts.limit ? `Texts are truncated to ${number(texts.limit)} characters. ` : "";
  const lost = texts.unplaced ? `${plural(texts.unplaced, "text")} without a position ${texts.unplaced === 1 ? "is" : "are"} left out. ` : "";
  byId("map-hint").textContent = `Each mark is a text; similar texts are close together. ${left}${lost}${cutNote}`
    + (data.categories.length > PALETTES.light.length ? "Colours are reused for distant categories." : "");
  for (const kind of ["known", "novel"]) {
    byId(`map-${kind}`).addEventListener("change", (event) => {
      shownKinds[kind] = event.target.checked;
      point(-1);
    });
  }
  byId("map-names").addEventListener("change", drawMap);
  byId("map-in").addEventListener("click", () => zoomBy(1.6));
  byId("map-out").addEventListener("click", () => zoomBy(1 / 1.6));
  byId("map-reset").addEventListener("click", resetMap);
  let wait;
  byId("map-search").addEventListener("input", (event) => {
    clearTimeout(wait);
    wait = setTimeout(() => find(event.target.value), 120);
  });
  startPointer();
  canvas.addEventListener("keydown", mapKey);
  canvas.addEventListener("blur", () => point(-1));
  painters.push(paintMap); // at once, because printing has no next frame
  painters.push(showLegend);
  startNarrowing();
  onSize(byId("map-frame"), sizeOf, fitMap);
  fitMap();
  showLegend();
  showPanel();
}

function startPointer() {
  let from = null; // where a drag began
  let dragged = false;
  const place = (event) => {
    const frame = canvas.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    from = place(event);
    dragged = false;
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (from && (dragged || Math.hypot(x - from[0], y - from[1]) > 5)) {
      if (!dragged && event.pointerType !== "mouse" && view.zoom === 1) return;
      if (!dragged) canvas.setPointerCapture(event.pointerId);
      dragged = true;
      pointed = -1;
      moveBy(x - from[0], y - from[1]);
      from = [x, y];
    } else if (!from) {
      const i = textAt(x, y, 12);
      if (i !== pointed) point(i, false);
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    const [x, y] = place(event);
    if (from && !dragged) {
      const i = textAt(x, y, event.pointerType === "mouse" ? 12 : 22);
      point(i, false);
      choose(i < 0 ? -1 : texts.category[i], "");
    }
    from = null;
  });
  canvas.addEventListener("pointercancel", () => (from = null));
  canvas.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse") point(-1);
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY / 300), ...place(event));
  }, { passive: false });
}

function mapKey(event) {
  const arrow = ARROWS[event.key];
  if (arrow && event.shiftKey) moveBy(-60 * arrow[0], -60 * arrow[1]);
  else if (arrow) stepTo(arrow);
  else if (event.key === "+" || event.key === "=") zoomBy(1.6);
  else if (event.key === "-") zoomBy(1 / 1.6);
  else if (event.key === "0") resetMap();
  else if (event.key === "Enter" && pointed >= 0) choose(texts.category[pointed], "");
  else if (event.key === "Escape") {
    point(-1);
    choose(-1, "");
  } else return;
  event.preventDefault();
}

// Go to the nearest text in a direction; without a current text, to the one in the middle.
function stepTo([dx, dy]) {
  if (pointed < 0) return point(textAt(view.width / 2, view.height / 2, Infinity), true);
  let best = -1;
  let least = Infinity;
  for (let i = 0; i < count; i++) {
    if (i === pointed || !visible(i) || !active(i)) continue;
    const x = texts.x[i] - texts.x[pointed];
    const y = texts.y[i] - texts.y[pointed];
    const ahead = x * dx + y * dy;
    const aside = Math.abs(x * dy) + Math.abs(y * dx);
    if (ahead <= 0 || aside > ahead) continue;
    if (ahead + 2 * aside < least) [least, best] = [ahead + 2 * aside, i];
  }
  if (best < 0) return;
  point(best, true);
  const [x, y] = [screenX(texts.x[best]), screenY(texts.y[best])];
  if (x < 0 || y < 0 || x > view.width || y > view.height) {
    moveBy(view.width / 2 - x, view.height / 2 - y);
  }
}

function choose(at, where) {
  chosen = at;
  if (at >= 0 && !shownKinds[data.categories[at].kind]) byId(`map-${data.categories[at].kind}`).click();
  markRow(at);
  showPanel();
  drawMap();
  if (where === "panel") {
    byId("map").scrollIntoView();
    byId("panel").focus({ preventScroll: true });
    if (window.innerWidth <= 860) byId("panel").scrollIntoView(); // the panel is below the map
  }
}

function showPanel() {
  fill("panel", panelContent());
  byId("panel").scrollTop = 0; // last: it computes the layout
}

function panelContent() {
  if (chosen < 0) return hits ? found() : unchosen();
  const category = data.categories[chosen];
  return [make("div", { class: "panel-head" }, badge(category.kind),
    make("button", { type: "button", class: "quiet", onclick: () => choose(-1, "") }, "Close")),
  make("h3", { class: "name" }, said(category.name)), decided(category), added.panel(chosen),
  about(chosen), allTexts(chosen)];
}

function unchosen() {
  const largest = (kind) => data.categories.map((_, at) => at)
    .filter((at) => data.categories[at].kind === kind)
    .sort((a, b) => data.categories[b].size - data.categories[a].size).slice(0, 8);
  const group = (kind, title) => {
    const list = largest(kind);
    return list.length ? block(title,
      make("ul", { class: "items" }, list.map((at) => make("li", {}, pick(at, true))))) : null;
  };
  return [make("h3", {}, "Select a category"),
    make("p", { class: "hint" }, "Click a text on the map, or a name below. Discs are texts of "
      + "known categories, diamonds those of novel ones."),
    group("novel", "Largest novel"), group("known", "Largest known")].filter(Boolean);
}

function found() {
  const list = [...Array(count).keys()].filter((i) => hits[i]);
  return [make("h3", {}, `${plural(list.length, "text")} found`), textList(list, wanted.words, true)];
}
