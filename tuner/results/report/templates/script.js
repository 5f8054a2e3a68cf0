// What a page does beyond being read: opens the folded part that a link points at, describes a trial, brushes lines.
const SVG = "http://www.w3.org/2000/svg";

function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let up = target; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
  target.scrollIntoView({ block: target.tagName === "TR" ? "center" : "start" });
}

// A click on a dot or a line leads to the trial's row.
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

class Brush {
  constructor(box) {
    this.svg = box.querySelector("svg");
    this.readout = box.querySelector("output");
    this.top = Number(this.svg.dataset.top);
    this.height = Number(this.svg.dataset.height);
    this.axes = [...this.svg.querySelectorAll(".axis")];
    this.ranges = this.axes.map(() => null); // of each axis: [upper, lower] that is kept
    this.lines = [...this.svg.querySelectorAll(".lines path")].map((path) => ({
      path,
      heights: path.getAttribute("d").slice(1).split(" ").filter((_, place) => place % 2).map(Number),
    }));
    this.axes.forEach((axis, place) => this.listen(axis, place));
  }

  listen(axis, place) {
    const handle = this.rectangle(axis, "handle", 28);
    handle.setAttribute("y", -10);
    handle.setAttribute("height", this.height + 46);
    const brush = this.rectangle(axis, "brush", 14);
    let start = null;
    handle.addEventListener("pointerdown", (event) => {
      start = this.y(event);
      handle.setPointerCapture(event.pointerId);
    });
    handle.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const ends = [start, this.y(event)].sort((a, b) => a - b);
      this.keep(place, brush, ends[1] - ends[0] > 3 ? ends : null);
    });
    handle.addEventListener("pointerup", (event) => {
      if (start !== null && Math.abs(this.y(event) - start) <= 3) this.keep(place, brush, null);
      start = null;
    });
    handle.addEventListener("pointercancel", () => { start = null; });
  }

  rectangle(axis, name, width) {
    const made = document.createElementNS(SVG, "rect");
    made.setAttribute("class", name);
    made.setAttribute("x", Number(axis.dataset.x) - width / 2);
    made.setAttribute("width", width);
    made.setAttribute("height", 0);
    axis.append(made);
    return made;
  }

  y(event) {
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse()).y;
  }

  keep(place, brush, range) {
    this.ranges[place] = range;
    brush.setAttribute("y", range ? range[0] : 0);
    brush.setAttribute("height", range ? range[1] - range[0] : 0);
    const isKept = ({ heights }) =>
      this.ranges.every((kept, axis) => !kept || (kept[0] <= heights[axis] && heights[axis] <= kept[1]));
    const left = this.lines.filter((line) => {
      const kept = isKept(line);
      line.path.classList.toggle("off", !kept);
      return kept;
    });
    this.tell(left);
  }

  tell(left) {
    const best = left.at(-1); // the fastest is drawn last
    const noun = this.lines.length === 1 ? "trial" : "trials";
    const words = [`${left.length} of ${this.lines.length} ${noun}`];
    if (best && best.heights.at(-1) <= this.height) words.push(this.words(best));
    this.readout.textContent = `${words.join("; the fastest of them: ")}.`;
  }

  words({ path, heights }) {
    const knobs = this.axes.slice(0, -1).map((axis, place) => {
      const values = JSON.parse(axis.dataset.values);
      return `${axis.dataset.name}=${values[Math.round((heights[place] / this.height) * (values.length - 1))]}`;
    });
    const speed = this.top * (1 - heights.at(-1) / this.height);
    return `trial ${path.dataset.t}, ${speed.toPrecision(4)} GFLOP/s, ${knobs.join(" ")}`;
  }
}

addEventListener("hashchange", reveal);
addEventListener("click", leadToTrials);
addEventListener("pointerover", tellTrial);
for (const box of document.querySelectorAll(".brushed")) new Brush(box);
markIndex();
reveal();
