// Search, filters and order of the page of statements. Without it the page shows all, in order.
// An address may choose: claims.html?verdict=refuted&paper=li2023&order=id&words=variance
"use strict";
const form = document.getElementById("find");
const shown = document.getElementById("shown");
const entries = [...document.querySelectorAll("[data-verdict]")];
const lists = [...new Set(entries.map((entry) => entry.parentElement))];
const texts = new Map(entries.map((entry) => [entry, entry.textContent.toLowerCase()]));
const places = new Map(entries.map((entry, place) => [entry, place]));
const orders = {
  place: (a, b) => places.get(a) - places.get(b),
  verdict: (a, b) => verdicts.indexOf(a.dataset.verdict) - verdicts.indexOf(b.dataset.verdict) || orders.place(a, b),
  id: (a, b) => a.id.localeCompare(b.id, "en", { numeric: true }),
};
const verdicts = [...form.verdict.options].map((option) => option.value);

function find() {
  const words = form.words.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const entry of entries) {
    entry.hidden =
      (form.verdict.value && entry.dataset.verdict !== form.verdict.value) ||
      (form.paper.value && entry.closest("section").dataset.paper !== form.paper.value) ||
      !words.every((word) => texts.get(entry).includes(word));
  }
  for (const part of document.querySelectorAll(".part, section"))
    part.hidden = !part.querySelector("[data-verdict]:not([hidden])");
  const count = entries.filter((entry) => !entry.hidden).length;
  shown.textContent = `${count} of ${entries.length} statements`;
}

function order() {
  for (const list of lists)
    list.append(...[...list.children].sort(orders[form.order.value]));
}

form.addEventListener("input", find);
form.order.addEventListener("input", order);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(() => { find(); order(); }));
for (const [name, value] of new URLSearchParams(location.search))
  if (name in form.elements) form.elements[name].value = value;
form.hidden = false;
find();
order();
