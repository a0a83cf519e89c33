// Sums up who used what, and in how many jobs, as candor usage does. A test compares both sums for the same jobs.
import { count, credits, hours } from "./format.js";

const ended = ["Completed", "Failed", "Cancelled", "Discarded"];
const words = {
  account: (j) => j.payer, project: (j) => (j.payer === j.account ? "" : j.payer), user: (j) => j.account, market: (j) => j.market, class: (_, u) => u.class ?? "",
};

/** keyOf returns the function that reads the value of a word, such as "user" or "label=run", from a job and its use of one class. */
function keyOf(word) {
  const label = word.startsWith("label=") && word.slice(6);
  return label ? (j) => j.labels?.[label] ?? "" : words[word];
}

/** grouping lists the words that people can choose; they can also choose labels. */
export const grouping = Object.keys(words);

const nothing = (keys) => ({ keys, jobs: 0, completed: 0, failed: 0, cancelled: 0, discarded: 0, slots: 0, cpus: 0, gpus: 0, memory: 0, micro: 0 });

/** Sums adds up what jobs used, in one row for each value of some words. Charges are in microcredits. */
export class Sums {
  constructor(by) {
    this.by = by.filter(keyOf);
    this.rows = new Map();
    this.all = nothing([]);
  }

  /** add adds a job to a row for each class that it used. Each of these rows counts the job once. */
  add(job) {
    const used = job.used?.length ? job.used : [{}]; // the job never had a slot
    const whole = used.reduce((sum, u) => sum + (u.slot_hours ?? 0), 0), charged = Math.round(1e6 * job.charged);
    let left = charged;
    const seen = new Set();
    for (const [i, u] of used.entries()) {
      const part = i < used.length - 1 && whole > 0 ? Math.trunc((charged * u.slot_hours) / whole) : left;
      left -= part;
      const row = this.row(job, u);
      for (const sum of [row, this.all]) {
        sum.slots += u.slot_hours ?? 0;
        sum.cpus += u.cpu_hours ?? 0;
        sum.gpus += u.gpu_hours ?? 0;
        sum.memory += u.memory_gib_hours ?? 0;
        sum.micro += part;
      }
      if (!seen.has(row)) end(row, job.state);
      seen.add(row);
    }
    end(this.all, job.state);
  }

  row(job, use) {
    const keys = this.by.map((word) => keyOf(word)(job, use)), name = keys.join("\0");
    if (!this.rows.has(name)) this.rows.set(name, nothing(keys));
    return this.rows.get(name);
  }

  /** sorted returns the rows. The row with the most slot time comes first. */
  sorted() {
    const less = (a, b) => { for (const [i, k] of a.keys.entries()) if (k !== b.keys[i]) return k < b.keys[i] ? -1 : 1; return 0; };
    return [...this.rows.values()].sort((a, b) => b.slots - a.slots || less(a, b));
  }

  /** lines returns a table for a spreadsheet, with its header. */
  lines() {
    const rows = this.sorted().map((r) => [...r.keys, r.jobs, r.completed, r.failed, r.cancelled, r.discarded, r.slots.toFixed(6), r.cpus.toFixed(6), r.gpus.toFixed(6), r.memory.toFixed(6), r.micro / 1e6]);
    return [[...this.by, "jobs", "completed", "failed", "cancelled", "discarded", "slot_hours", "cpu_hours", "gpu_hours", "memory_gib_hours", "credits"], ...rows];
  }
}

function end(row, state) {
  row.jobs++;
  row[ended.includes(state) ? state.toLowerCase() : "discarded"]++;
}

/** hasEnded reports whether a job ended at or after one instant, and before another. */
export const hasEnded = (job, from, to) => ended.includes(job.state) && new Date(job.ended) >= from && new Date(job.ended) < to;

/** numbers are the columns of a row after its keys. A narrow screen hides a column whose third value is true. */
export const numbers = [
  ["Jobs", (r) => count(r.jobs)], ["Completed", (r) => count(r.completed), true], ["Failed", (r) => count(r.failed), true], ["Cancelled", (r) => count(r.cancelled), true], ["Discarded", (r) => count(r.discarded), true],
  ["Slot hours", (r) => hours(r.slots)], ["CPU hours", (r) => hours(r.cpus)], ["GPU hours", (r) => hours(r.gpus)], ["GiB hours", (r) => hours(r.memory), true], ["Credits", (r) => credits(r.micro / 1e6)],
];
