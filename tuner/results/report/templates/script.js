// What a page does beyond being read: opens the folded part that a link points at, describes a trial.
const SVG = "http://www.w3.org/2000/svg";

function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let up = target; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
  target.scrollIntoView({ block: target.tagName === "TR" ? "center" : "start" });
}

// A click on a dot leads to the trial's row.
function leadToTrials(event) {
  const trial = event.target.closest("[data-t]");
  if (trial && document.getElementById(`t${trial.dataset.t}`)) location.hash = `t${trial.dataset.t}`;
}

function tellTrial(event) {
  const mark = event.target.closest("[data-t]");
  if (!mark || mark.querySelector("title")) return;
  const row = document.getElementById(`t${mark.dataset.t}`);
  const cells = row ? [...row.children].slice(1).map((cell) => cell.textContent) : [];
  const title = document.createElementNS(SVG, "title");
  title.textContent = [`trial ${mark.dataset.t}`, ...cells].join(", ");
  mark.append(title);
}

function markIndex() {
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const headings = [...links.keys()].map((id) => document.getElementById(id));
  const mark = () => {
    const above = headings.filter((heading) => heading.getBoundingClientRect().top < innerHeight / 3);
    const here = links.get((above.at(-1) ?? headings[0]).id);
    if (here.classList.contains("here")) return;
    for (const link of links.values()) link.classList.toggle("here", link === here);
    here.parentElement.scrollTo({ left: here.offsetLeft - 40, top: here.offsetTop - 80 });
  };
  addEventListener("scroll", mark, { passive: true });
  mark();
}

addEventListener("hashchange", reveal);
addEventListener("click", leadToTrials);
addEventListener("pointerover", tellTrial);
markIndex();
reveal();
