// Lines over time, drawn by uPlot.
import uPlot from "uplot";
import { h } from "./dom.js";
import { time } from "./format.js";

const colours = ["--fill", "--second", "--good", "--bad"];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const plots = new Map();

/**
 * plot is the place of a drawing, and a text that says the same for screen readers; draw
 * fills it once it is on the page.
 */
export function plot(id, label) {
  return h("figure", { class: "plot", "data-key": `plot ${id}` },
    h("div", { id: `plot-${id}`, role: "img", "aria-label": label, "data-keep": id }), h("figcaption", {}, label));
}

/**
 * draw draws lines: xs are in seconds since 1970 (or plain numbers, with linear), and a line
 * is {label, values, stepped, dash}. Unknown values are null.
 */
export function draw(id, xs, lines, { linear = false, height = 170, write = (v) => String(v), axis = write, xWrite } = {}) {
  const place = document.getElementById(`plot-${id}`);
  if (!place) return;
  const data = [xs, ...lines.map((l) => l.values)];
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const shape = JSON.stringify([lines.map((l) => [l.label, l.stepped, l.dash]), dark, linear]);
  const width = Math.max(200, place.clientWidth);
  const old = plots.get(id);
  if (old && old.shape === shape && place.contains(old.plot.root)) {
    if (old.plot.width !== width) old.plot.setSize({ width, height });
    old.plot.setData(data);
    return;
  }
  old?.plot.destroy();
  const ink = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  const at = xWrite ?? ((v) => (linear ? String(v) : time(v * 1000)));
  const made = new uPlot({
    width, height, scales: { x: { time: !linear }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] } },
    padding: [8, 40, 0, 0], cursor: { drag: { x: false, y: false } },
    axes: [{ ...ink, space: 95, ...(xWrite ? { values: (_, vs) => vs.map(xWrite) } : linear ? {} : { values: clocks }) }, { ...ink, size: 62, values: (_, vs) => vs.map(axis) }],
    series: [{ label: linear ? "At" : "Time", value: (_, v) => (v == null ? "" : at(v)) }, ...lines.map((l, i) => ({
      label: l.label, stroke: colour(colours[i % colours.length]), width: 2, dash: l.dash, spanGaps: false,
      paths: l.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined, points: { show: l.points ?? false },
      value: (_, v) => (v == null ? "" : write(v)),
    }))],
  }, data, place);
  plots.set(id, { plot: made, shape });
}

/** clocks labels an axis of time in the locale of the viewer; ticks within a second have one label. */
function clocks(_, values) {
  const long = values.length > 1 && values[1] - values[0] >= 43200;
  const seconds = values.length > 1 && values[1] - values[0] < 60;
  const f = new Intl.DateTimeFormat(undefined, long ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined });
  const labels = values.map((v) => f.format(new Date(v * 1000)));
  return labels.map((label, i) => (label === labels[i - 1] ? null : label));
}

/** undraw forgets the drawings of the page before. */
export function undraw() {
  for (const { plot } of plots.values()) plot.destroy();
  plots.clear();
}

/** redraw draws all anew, in the colours and the width that hold now. */
export function redraw() {
  for (const { plot } of plots.values()) plot.setSize({ width: Math.max(200, plot.root.parentElement?.clientWidth ?? 0), height: plot.height });
}
