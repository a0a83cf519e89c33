// Numbers and times as the viewer writes them: in the locale and the time zone of the
// browser. Amounts have fewer digits than at the command line; an exported table has all digits.

let locale, zone;

/** speak sets the locale and the time zone, for tests; without, they are the browser's. */
export function speak(language, timeZone) {
  locale = language;
  zone = timeZone;
  made.clear();
}

const made = new Map(); // making a format is slow
function numbers(options) {
  const key = JSON.stringify(options);
  if (!made.has(key)) made.set(key, new Intl.NumberFormat(locale, options));
  return made.get(key);
}

export const count = (n) => numbers({ maximumFractionDigits: 0 }).format(n ?? 0);

const tiny = 0.0001;

/** amount writes an amount with the digits that people read; an amount below tiny is written as less than tiny. */
function amount(n, options) {
  const size = Math.abs(n);
  if (size > 0 && size < tiny) return `${n < 0 ? "−" : options.signDisplay ? "+" : ""}<${numbers({ maximumFractionDigits: 4 }).format(tiny)}`;
  return numbers({ ...(size >= 1 || size === 0 ? { maximumFractionDigits: 2 } : size >= 0.01 ? { maximumFractionDigits: 3 } : { maximumSignificantDigits: 2 }), ...options }).format(n);
}

export const credits = (n) => amount(n ?? 0, {});
export const inCredits = (n) => credits(n) + (n === 1 ? " credit" : " credits");
export const price = (n) => (n > 0 && n < 0.01 ? credits(n) : numbers({ maximumSignificantDigits: 4, roundingMode: "halfEven" }).format(n ?? 0));
/** hourly writes the price of a slot-second as the price of an hour, with three digits, as the commands do. */
export const hourly = (n) => {
  const an = 3600 * (n ?? 0);
  return numbers({ maximumFractionDigits: 9, useGrouping: false }).format(an >= 100 ? Math.round(an) : Number(an.toPrecision(3)));
};
export const hours = (n) => numbers({ minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(n ?? 0);
export const change = (n) => (n ? amount(n, { signDisplay: "always" }) : "");

/** percent writes small shares with a digit more, as candor top does. */
export function percent(share) {
  const digits = share > 0 && share < 0.0995 ? 1 : 0;
  return numbers({ style: "percent", roundingMode: "halfEven", minimumFractionDigits: digits, maximumFractionDigits: digits }).format(share ?? 0);
}

export const plural = (n, one) => `${count(n)} ${one}${n === 1 ? "" : "s"}`;

/** named reports whether the site knows an instant: 1970 stands for none. */
export const named = (time) => Boolean(time) && new Date(time).getTime() > 0;

export function time(at, now = Date.now()) {
  if (!named(at)) return "";
  const date = new Date(at), today = new Date(now);
  const options = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: zone };
  if (date.getFullYear() !== today.getFullYear()) options.year = "numeric";
  const key = JSON.stringify(options);
  if (!made.has(key)) made.set(key, new Intl.DateTimeFormat(locale, options));
  return made.get(key).format(date);
}

/** seconds reads a duration such as "1h2m3.5s" or "113.957ms". */
export function seconds(text) {
  const unit = { h: 3600, m: 60, s: 1, ms: 1e-3, "µs": 1e-6, us: 1e-6, ns: 1e-9, d: 86400 };
  let sum = 0;
  for (const [, n, u] of String(text ?? "").matchAll(/([\d.]+)(ms|µs|us|ns|d|h|m|s)/g)) sum += Number(n) * unit[u];
  return sum;
}

/** span writes a number of seconds with two units at most. */
export function span(s) {
  if (!(s > 0)) return "0s";
  if (s < 1) return `${Math.round(s * 1000)}ms`;
  if (s < 10) return `${Math.round(s * 10) / 10}s`;
  s = Math.round(s);
  const parts = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  const first = parts.findIndex(([, n]) => s >= n);
  return parts.slice(first, first + 2).map(([u, n]) => {
    const k = Math.floor(s / n);
    s -= k * n;
    return k ? k + u : "";
  }).join("");
}

/** between is the time from one instant to another, or to now. */
export function between(from, to, now = Date.now()) {
  if (!named(from)) return "";
  return span(((named(to) ? new Date(to).getTime() : now) - new Date(from).getTime()) / 1000);
}

export function bytes(n) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) [n, i] = [n / 1024, i + 1];
  return `${numbers({ maximumFractionDigits: i ? 1 : 0 }).format(n)} ${units[i]}`;
}
