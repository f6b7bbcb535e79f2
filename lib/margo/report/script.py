"""What ``report.html`` can do beside being read: sort tables, copy from it, say that a table is wider than shown."""

SCRIPT = """
const number = (text) => /^[<\\u2212+-]?\\s*[\\d.]/.test(text.trim())
  ? parseFloat(text.trim().replace("\\u2212", "-").replace(/^<\\s*/, "")) : NaN;
function sortBy(table, column, down) {
  const rows = [...table.tBodies[0].rows];
  const keys = rows.map((row) => row.cells[column].textContent), values = keys.map(number);
  const some = keys.filter((key) => key.trim()).every((key) => !Number.isNaN(number(key)));
  const order = rows.map((row, n) => n).sort((a, b) => {
    if (!keys[a].trim() || !keys[b].trim()) return !keys[a].trim() - !keys[b].trim() || a - b;
    const gap = some ? values[a] - values[b] : keys[a].localeCompare(keys[b], undefined, { numeric: true });
    return (down ? -gap : gap) || a - b;
  });
  table.tBodies[0].replaceChildren(...order.map((n) => rows[n]));
  table.classList.add("sorted");
}
for (const table of document.querySelectorAll("table")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    button.title = "Sort";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sortBy(table, column, down);
    });
  });
}
async function copied(text) {
  try { await navigator.clipboard.writeText(text); return true; } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
function copyButton(text) {
  const button = document.createElement("button");
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    button.textContent = (await copied(text())) ? "Copied" : "Not allowed";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return button;
}
for (const pre of document.querySelectorAll("pre")) {
  const text = pre.textContent;
  pre.before(copyButton(() => text));
}
for (const box of document.querySelectorAll(".scroll")) {
  const table = box.querySelector("table");
  const lines = () => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join("\\t"));
  const bar = document.createElement("div"), sign = document.createElement("span");
  bar.className = "bar";
  sign.className = "more";
  sign.textContent = "scroll for more columns \\u2192";
  bar.append(copyButton(() => lines().join("\\n")), sign);
  box.before(bar);
  box.tabIndex = 0;
  const look = () => {
    sign.hidden = box.scrollWidth <= box.clientWidth + 1;
    sign.textContent = box.scrollLeft + box.clientWidth < box.scrollWidth - 1
      ? "scroll for more columns \\u2192" : "\\u2190 scroll back";
  };
  box.addEventListener("scroll", look);
  new ResizeObserver(look).observe(box);
  look();
}
"""
