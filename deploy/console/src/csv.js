// Tables for a spreadsheet, and files that the browser stores.
import { h } from "./dom.js";

function cell(v) {
  v = String(v ?? "");
  if (/^[=+\-@\t\r]/.test(v) && Number.isNaN(Number(v))) v = `'${v}`; // a spreadsheet must not take the text for a formula
  return /[",\n\r]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v;
}

/** csv writes rows of values as comma-separated text. */
export const csv = (rows) => rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";

/** save makes the browser store a file. */
export function save(blob, name) {
  const a = h("a", { href: URL.createObjectURL(blob), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}

export const saveTable = (rows, name) => save(new Blob([csv(rows)], { type: "text/csv" }), name);
