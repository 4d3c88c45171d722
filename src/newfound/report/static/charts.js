// Line charts as SVG, drawn to the available width.
function ticks(low, high, most) {
  const span = high - low || 1;
  const rough = span / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough);
  const list = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step) {
    list.push(Number(value.toPrecision(12)));
  }
  return list;
}

const short = (value) => (Math.abs(value) >= 10000 || (value !== 0 && Math.abs(value) < 0.001)
  ? value.toExponential(1) : whole.format(Number(value.toPrecision(4))));

// lineChart({points, x, y, label, height, mark, band}) where mark is an x to highlight.
function lineChart(options) {
  const frame = make("div", { class: "chart" });
  onSize(frame, widthOf, () => frame.replaceChildren(drawChart(options, frame.clientWidth)));
  return frame;
}

function drawChart({ points, x: xName, y: yName, label, height, mark, band }, width) {
  const room = { left: 52, right: 14, top: mark ? 22 : 10, bottom: xName ? 40 : 24 };
  const xs = points.map((one) => one[0]);
  const ys = points.map((one) => one[1]);
  let [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  if (x0 === x1) [x0, x1] = [x0 - 1, x1 + 1];
  if (y0 === y1) [y0, y1] = [y0 - Math.abs(y0 || 1) / 2, y1 + Math.abs(y1 || 1) / 2];
  const px = (x) => room.left + ((x - x0) / (x1 - x0)) * (width - room.left - room.right);
  const py = (y) => height - room.bottom - ((y - y0) / (y1 - y0)) * (height - room.top - room.bottom);
  const held = (x) => Math.min(Math.max(x, x0), x1);
  const chart = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  if (band) {
    chart.append(svg("rect", { class: "band", x: px(held(band[0])), y: room.top,
      width: Math.max(px(held(band[1])) - px(held(band[0])), 2), height: height - room.top - room.bottom }));
  }
  for (const value of ticks(y0, y1, height / 45)) {
    chart.append(svg("line", { class: "grid", x1: room.left, x2: width - room.right, y1: py(value), y2: py(value) }),
      svg("text", { class: "tick", x: room.left - 7, y: py(value) + 4, "text-anchor": "end" }, short(value)));
  }
  const wholeTicks = ticks(x0, x1, width / 90).filter((value) => Number.isInteger(value));
  for (const value of wholeTicks) {
    chart.append(svg("text", { class: "tick", x: px(value), y: height - room.bottom + 17, "text-anchor": "middle" }, short(value)));
  }
  if (xName) {
    chart.append(svg("text", { class: "axis", x: (room.left + width - room.right) / 2, y: height - 4, "text-anchor": "middle" }, xName));
  }
  if (yName) {
    chart.append(svg("text", { class: "axis", x: -(room.top + (height - room.bottom - room.top) / 2), y: 11, transform: "rotate(-90)", "text-anchor": "middle" }, yName));
  }
  chart.append(svg("polyline", { class: "line", points: points.map(([x, y]) => `${px(x)},${py(y)}`).join(" ") }));
  if (mark !== undefined && mark !== null && mark >= x0 && mark <= x1) {
    const end = px(mark) > width * 0.8 ? "end" : px(mark) < width * 0.2 ? "start" : "middle";
    chart.append(svg("line", { class: "marker", x1: px(mark), x2: px(mark), y1: room.top, y2: height - room.bottom }),
      svg("text", { class: "marker-name", x: px(mark), y: 14, "text-anchor": end }, plural(mark, "category", "categories")));
  }
  for (const [x, y] of points.length > 80 ? [] : points) {
    chart.append(svg("circle", { class: x === mark ? "dot best" : "dot", cx: px(x), cy: py(y), r: x === mark ? 5 : 3 },
      svg("title", {}, `${short(x)}: ${short(y)}`)));
  }
  return chart;
}

function numbersOf(points, names) {
  return make("details", { class: "numbers-of" }, make("summary", {}, "Show the numbers"),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers" },
      make("table", { class: "plain" },
        make("thead", {}, make("tr", {}, names.map((name) => make("th", { scope: "col" }, name)))),
        make("tbody", {}, points.map((row) => make("tr", {}, row.map((value) => make("td", {}, typeof value === "string" ? value : short(value)))))))));
}

function startEstimate() {
  const curve = data.estimate;
  if (!curve) {
    fill("estimate-body", make("p", {}, "The number of categories was given, not estimated."));
    return;
  }
  const between = curve.low !== null && curve.high !== null && curve.low !== curve.high
    ? ` Any number from ${number(curve.low)} to ${number(curve.high)} (shaded) is plausible.` : "";
  const parts = [make("p", {}, make("b", {}, `The estimate is ${plural(curve.estimate, "category", "categories")}.`), between)];
  if (curve.how) parts.push(make("p", { class: "hint" }, said(curve.how)));
  if (curve.points.length > 1) {
    parts.push(make("div", { class: "card" }, lineChart({
      points: curve.points, x: "Number of categories", y: "Score", height: 280, mark: curve.estimate,
      band: between ? [curve.low, curve.high] : null,
      label: `Score of each candidate number of categories; the estimate is ${number(curve.estimate)}`,
    }), numbersOf(curve.points, ["Categories", "Score (higher is more likely)"])));
  }
  fill("estimate-body", parts);
}

const measureWords = (name) => {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
};

function startTraining() {
  if (data.curves.length === 0) {
    fill("training-body", make("p", {}, "No training was recorded."));
    return;
  }
  const stages = [...new Set(data.curves.map((curve) => curve.stage))];
  fill("training-body", make("p", { class: "hint" },
    "One point per epoch. Losses should fall and level off; accuracy on held-out labelled texts should rise."),
  stages.map((stage) => make("div", {}, make("h3", {}, said(measureWords(stage))),
    make("div", { class: "charts" }, data.curves.filter((curve) => curve.stage === stage)
      .map((curve) => {
        const [, last] = curve.points[curve.points.length - 1];
        return make("figure", { class: "card" },
          make("figcaption", {}, said(measureWords(curve.name)), make("span", { class: "hint" }, ` last: ${short(last)}`)),
          lineChart({ points: curve.points, height: 150, label: `${curve.name} by epoch` }));
      })))));
}
