// Lines over time, drawn by uPlot.
import uPlot from "uplot";
import { h } from "./dom.js";
import { count, time } from "./format.js";

const colours = ["--fill", "--second", "--good", "--bad"];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const plots = new Map();
const wholes = [0, 1, 2, 3, 4, 5, 6].flatMap((n) => [1, 2, 5].map((k) => k * 10 ** n)); // steps of an axis that counts things

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
 * is {label, values, stepped, dash}. Unknown values are null; gap says in the drawing why they are. unit is the unit of the
 * values, and xUnit that of the xs.
 */
export function draw(id, xs, lines, { linear = false, height = 190, write = (v) => String(v), axis = write, xWrite, unit, xUnit, gap } = {}) {
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
  const font = getComputedStyle(place).fontFamily, named = (label) => label && { label, labelSize: 20, labelFont: `12px ${font}`, labelGap: 0 };
  const ink = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  const at = xWrite ?? ((v) => (linear ? String(v) : time(v * 1000)));
  const made = new uPlot({
    width, height, scales: { x: { time: !linear }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] } },
    padding: [8, 40, 0, 0], cursor: { drag: { x: false, y: false } },
    hooks: { draw: gap ? [(u) => gaps(u, gap)] : [] },
    axes: [{ ...ink, ...named(xUnit), space: 95, ...(xWrite ? { values: (_, vs) => vs.map(xWrite) } : linear ? {} : { values: clocks }) }, { ...ink, ...named(unit), ...(write === count && { incrs: wholes }), size: 62, values: (_, vs) => vs.map(axis) }],
    series: [{ label: linear ? "At" : "Time", value: (_, v) => (v == null ? "" : at(v)) }, ...lines.map((l, i) => ({
      label: l.label, stroke: colour(colours[i % colours.length]), width: 2, dash: l.dash, spanGaps: false,
      paths: l.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined, points: { show: l.points ?? false },
      value: (_, v) => (v == null ? "" : write(v)),
    }))],
  }, data, place);
  plots.set(id, { plot: made, shape });
}

/** scaled is a line with its known values multiplied by a factor. */
export const scaled = (line, factor) => ({ ...line, values: line.values.map((v) => (v === null ? null : v * factor)) });

/** gaps writes into the gaps of a line why its values are unknown there. */
function gaps(u, why) {
  const { ctx } = u;
  ctx.save();
  ctx.fillStyle = colour("--soft");
  ctx.font = `${12 * devicePixelRatio}px ${getComputedStyle(u.root).fontFamily}`;
  ctx.textAlign = "center";
  const [xs, ...lines] = u.data;
  for (const [i, values] of lines.entries()) {
    for (let a = values.indexOf(null); a >= 0;) {
      let b = a;
      while (b + 1 < values.length && values[b + 1] === null) b++;
      const from = u.valToPos(xs[a], "x", true), to = u.valToPos(xs[Math.min(b + 1, xs.length - 1)], "x", true);
      const text = `${u.series[i + 1].label}: ${why}`, y = u.bbox.top + (18 + 16 * i) * devicePixelRatio;
      if (to - from > ctx.measureText(text).width) ctx.fillText(text, (from + to) / 2, y);
      a = values.indexOf(null, b + 1);
    }
  }
  ctx.restore();
}

/** clocks labels an axis of time in the locale of the viewer: with the day where a day begins, and once for each second. */
function clocks(_, values) {
  const long = values.length > 1 && values[1] - values[0] >= 43200;
  const seconds = values.length > 1 && values[1] - values[0] < 60;
  const f = new Intl.DateTimeFormat(undefined, long ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined });
  const labels = values.map((v) => f.format(new Date(v * 1000)));
  if (long) return labels.map((label, i) => (label === labels[i - 1] ? null : label));
  const days = values.map((v) => new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" }).format(new Date(v * 1000)));
  return labels.map((label, i) => (label === labels[i - 1] ? null : days[i] === days[i - 1] ? label : `${label}\n${days[i]}`));
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
