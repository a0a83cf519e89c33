// Why an entry stands in a statement, in the words of candor statement.
import { credits } from "./format.js";

export function inWords(e) {
  return [happened(e), e.reason?.replace(/[: ]+$/, "")].filter(Boolean).join(": ");
}

function happened(e) {
  if (e.kind === "hold") return `set aside${e.member ? ` for ${e.member}` : ""}`;
  if (e.kind === "post") return ofHold(e);
  if (e.kind === "void") return e.by ? `nothing charged, ${credits(-e.hold)} given back` : `${credits(-e.hold)} given back`;
  return moved(e);
}

function ofHold(e) {
  if (e.change >= 0 && e.hold === 0) return "received";
  const back = Math.round((-e.hold + e.change) * 1e6) / 1e6;
  if (back === 0) return `all ${credits(-e.change)} charged`;
  if (e.change === 0) return `nothing charged, ${credits(back)} given back`;
  return `${credits(-e.change)} of ${credits(-e.hold)} charged, ${credits(back)} given back`;
}

function moved(e) {
  const ground = e.transfer.startsWith("$") ? e.transfer.slice(1).split("/")[0] : "";
  switch (ground) {
    case "grant": return `granted by ${e.by}`;
    case "withdraw": return `withdrawn by ${e.by}`;
    case "correct": return `correction by ${e.by} of ${e.pending}`;
    case "return": return `unspent of grant ${String(e.pending).replace("$grant/", "")}`;
    case "pay": return e.change < 0 ? `transferred by ${e.by}` : `received from ${e.by}`;
  }
  return "";
}

/** nameJobs gives a hold the number of its job, which later entries know, or the jobs. */
export function nameJobs(entries, live = []) {
  const jobs = new Map(live.filter((j) => j.hold).map((j) => [j.hold, j.job]));
  for (const e of entries) if (e.pending && e.job) jobs.set(e.pending, e.job);
  for (const e of entries) if (e.kind === "hold" && !e.job) e.job = jobs.get(e.transfer);
  return entries;
}

/**
 * fold leaves out each hold that ended in one other entry of a list: that entry says what was held and what became of it.
 * Its field "since" is when the hold began.
 */
export function fold(entries) {
  const ends = new Map();
  for (const e of entries) if (e.kind !== "hold" && e.pending) ends.set(e.pending, ends.has(e.pending) ? null : e);
  const began = new Map(entries.filter((e) => e.kind === "hold" && ends.get(e.transfer)).map((e) => [e.transfer, e.at]));
  return entries.filter((e) => !(e.kind === "hold" && began.has(e.transfer)))
    .map((e) => (began.has(e.pending) ? { ...e, since: began.get(e.pending) } : e));
}
