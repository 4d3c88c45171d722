// What narrows the map, the lists and the table: words that texts contain, and columns of the user.
let hits = null; // texts that match, as a list of 0 and 1; null if nothing narrows
let hitsOf = null; // and how many of them each category has
let lowerTexts = null;
const wanted = { words: "", values: [], from: -1, to: -1 }; // values: chosen value per column, or -1

const lowered = (i) => (lowerTexts ||= texts.text.map((text) => text.toLowerCase()))[i];

function startNarrowing() {
  wanted.values = texts.columns.map(() => -1);
  const named = [["category", "Category"], ...texts.columns.map((column, at) => [String(at), column.name]),
    ...(texts.time ? [["time", texts.time.name]] : [])];
  if (named.length === 1) return;
  const option = ([value, name]) => make("option", { value }, name);
  const select = (name, options, change) => make("label", { class: "field choice" },
    make("span", {}, said(name)), make("select", { onchange: (event) => change(event.target.value) }, options.map(option)));
  const counts = (column) => {
    const list = column.values.map(() => 0);
    column.of.forEach((at) => at >= 0 && (list[at] += 1));
    return list;
  };
  const columns = texts.columns.map((column, at) => {
    const sizes = counts(column);
    const options = column.values.map((value, i) => [String(i), `${cut(value || "(empty)", 40)} (${number(sizes[i])})`]);
    return select(column.name, [["-1", "All"], ...options], (value) => {
      wanted.values[at] = Number(value);
      narrow();
    });
  });
  const { time } = texts;
  const days = time ? time.values.map((value, i) => [String(i), value]) : [];
  const range = !time ? [] : [
    select(`${time.name} from`, [["-1", "Begin"], ...days], (value) => { wanted.from = Number(value); narrow(); }),
    select("to", [["-1", "End"], ...days], (value) => { wanted.to = Number(value); narrow(); })];
  fill("narrowing", select("Colour by", named, (value) => colourBy(value)), columns, range);
  byId("narrowing").firstChild.lastChild.id = "map-colour";
  byId("narrowing").hidden = false;
}

function narrow() {
  const { words, values, from, to } = wanted;
  const any = words !== "" || from >= 0 || to >= 0 || values.some((value) => value >= 0);
  hits = any ? texts.text.map((_, i) => (
    (words === "" || lowered(i).includes(words))
    && values.every((value, at) => value < 0 || texts.columns[at].of[i] === value)
    && (from < 0 || texts.time.of[i] >= from)
    && (to < 0 || (texts.time.of[i] >= 0 && texts.time.of[i] <= to)) ? 1 : 0)) : null;
  hitsOf = hits && data.categories.map(() => 0);
  hits?.forEach((hit, i) => (hitsOf[texts.category[i]] += hit));
  showHits();
  point(-1);
  showPanel();
}

function find(words) {
  wanted.words = words.trim().toLowerCase();
  narrow();
}
