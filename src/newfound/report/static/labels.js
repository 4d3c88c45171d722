// Names on the map: where a name finds no room, its number in the legend stands there instead.
const AROUND = [[0, 0], [0, -1], [0, 1], [1, 0], [-1, 0], [1, -1], [-1, -1], [1, 1], [-1, 1], [0, -2], [0, 2]];
let legendOrder = []; // categories, as numbered in the legend
let legendNumber = []; // of each category

function orderLegend() {
  legendOrder = data.categories.map((_, at) => at).filter((at) => centres[at]).sort(byKindAndSize);
  legendNumber = data.categories.map(() => 0);
  legendOrder.forEach((at, i) => (legendNumber[at] = i + 1));
}

// First every category gets its number, then the largest ones a name, if it overlaps nothing.
function paintNames() {
  const narrow = view.width < 520;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  const weight = (at) => (hits ? hitsOf[at] : centres[at]?.size || 0);
  const order = (chosen >= 0 ? [chosen]
    : [...centres.keys()].filter(weight).sort((a, b) => weight(b) - weight(a)))
    .filter((at) => centres[at] && shownKinds[data.categories[at].kind]
      && within(screenX(centres[at].x), screenY(centres[at].y)));
  const placed = new Map();
  const place = (at, name, font, pad, high, isNumber) => {
    pen.font = font;
    const others = [...placed].filter(([other]) => other !== at).map(([, box]) => box);
    const box = roomFor(at, pen.measureText(name).width / 2 + pad, high, others);
    if (box) placed.set(at, { ...box, name, font, isNumber });
    return box !== null;
  };
  for (const at of order) {
    place(at, String(legendNumber[at]), "700 11px system-ui, sans-serif", 3, 7, true);
  }
  // On a small map, more names would cover the marks.
  for (const at of order.slice(0, narrow ? 6 : 30)) {
    const { kind, name } = data.categories[at];
    [narrow ? 18 : 28, 14].some((length) => place(at, (kind === "novel" ? "◆ " : "") + cut(name, length),
      `600 ${narrow ? 11 : 12}px system-ui, sans-serif`, 4, 8, false));
  }
  for (const [at, box] of placed) paintName(box, data.categories[at].kind);
}

const within = (x, y) => x >= 0 && y >= 0 && x <= view.width && y <= view.height;

function roomFor(at, half, high, taken) {
  const [x, y] = [screenX(centres[at].x), screenY(centres[at].y)];
  for (const [dx, dy] of AROUND) {
    const box = { half, high, y: y + dy * 2.1 * high,
      x: Math.min(Math.max(x + dx * (half + 4), half + 1), view.width - half - 1) };
    const inside = box.y > high + 1 && box.y < view.height - high - 1;
    const free = !taken.some((one) => Math.abs(one.x - box.x) < one.half + half
      && Math.abs(one.y - box.y) < one.high + high);
    const overButtons = box.y < 50 && box.x + half > view.width - 180;
    if (inside && free && !overButtons) return box;
  }
  return null;
}

function paintName({ name, font, x, y, half, high, isNumber }, kind) {
  pen.font = font;
  if (isNumber) {
    pen.fillStyle = ink("surface");
    pen.strokeStyle = ink(kind);
    pen.lineWidth = 1;
    pen.beginPath();
    pen.roundRect(x - half, y - high, 2 * half, 2 * high, kind === "known" ? high : 2);
    pen.fill();
    pen.stroke();
  } else {
    pen.lineWidth = 4;
    pen.strokeStyle = ink("surface");
    pen.strokeText(name, x, y);
  }
  pen.fillStyle = ink("text");
  pen.fillText(name, x, y);
}

// The legend: every category with its number, or the values of the column that gives the colours.
function showLegend() {
  const colour = colouring.legend();
  if (colour) {
    return fill("map-legend", make("ul", { class: "key-list" }, colour.map(([name, value]) => {
      const mark = make("span", { class: "swatch" });
      mark.style.setProperty("background", value);
      return make("li", {}, mark, said(name));
    })));
  }
  const list = make("ol", { class: "key-list" }, legendOrder.map((at) => {
    const category = data.categories[at];
    const mark = make("span", { class: `mark ${category.kind} own` });
    mark.style.setProperty("background", colourOf(at));
    const entry = make("button", { type: "button", class: "key", onclick: () => choose(chosen === at ? -1 : at, "") },
      make("span", { class: "nth" }, number(legendNumber[at])), mark,
      make("span", { class: "hidden" }, `${kindWord(category.kind)}: `),
      said(cut(category.name, 60)));
    const highlight = (on) => { lit = on ? at : -1; drawMap(); };
    for (const [event, on] of [["pointerenter", true], ["pointerleave", false], ["focus", true], ["blur", false]]) {
      entry.addEventListener(event, () => highlight(on));
    }
    return make("li", {}, entry);
  }));
  const open = byId("map-legend").querySelector("details")?.open ?? window.innerWidth > 860;
  fill("map-legend", make("details", { open },
    make("summary", {}, `Legend: ${plural(legendOrder.length, "category", "categories")}`),
    make("p", { class: "hint" }, "A number on the map stands for a name that finds no room there. Zoom in to read more names."),
    list));
}
