// Groups of look-alikes, as a tree that opens level by level.
function startTree() {
  const levels = data.categories[0]?.groups.length ?? 0;
  byId("tree").hidden = !levels;
  if (!levels) return;
  const all = data.categories.map((_, at) => at);
  fill("tree-body", branches(all, levels));
}

// The groups of these categories at a level, the largest first; level 0 is the categories.
function branches(list, level) {
  const size = (members) => members.reduce((sum, at) => sum + data.categories[at].size, 0);
  if (level === 0) {
    return make("ul", { class: "chips" }, [...list].sort((a, b) => data.categories[b].size - data.categories[a].size)
      .map((at) => make("li", {}, pick(at, true))));
  }
  const groups = new Map();
  for (const at of list) {
    const name = data.categories[at].groups[level - 1];
    groups.set(name, [...(groups.get(name) || []), at]);
  }
  // A group of one category is the category, a group of one group is that group.
  if (groups.size === 1 && level > 1) return branches(list, level - 1);
  return make("div", {}, [...groups].sort((a, b) => size(b[1]) - size(a[1])).map(([name, members]) => {
    if (members.length === 1) return make("p", { class: "alone" }, pick(members[0], true));
    const kinds = (kind) => members.filter((at) => data.categories[at].kind === kind).length;
    return make("details", { class: "group" }, make("summary", {}, make("b", {}, said(name)),
      make("span", { class: "hint" }, ` ${plural(size(members), "text")}, ${number(kinds("known"))} known and ${number(kinds("novel"))} novel`)),
    branches(members, level - 1));
  }));
}
