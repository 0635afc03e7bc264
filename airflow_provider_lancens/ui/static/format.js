// Numbers, sizes and times as text, in the language of the browser.

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];
const SPANS = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

export const number = (value) => value.toLocaleString();
export const short = (value) => compact.format(value);

export function bytes(value) {
  let unit = 0;
  for (; value >= 1000 && unit < UNITS.length - 1; unit++) value /= 1000;
  return `${value.toLocaleString(undefined, { maximumFractionDigits: unit && value < 100 ? 1 : 0 })} ${UNITS[unit]}`;
}

export function change(value, text = number) {
  return value === 0 ? "" : value > 0 ? `+${text(value)}` : `−${text(-value)}`;
}

export const exact = (iso) => moment.format(new Date(iso));

export function ago(iso) {
  const seconds = (new Date(iso) - Date.now()) / 1000;
  const [span, length] = SPANS.find(([, size]) => Math.abs(seconds) >= size) ?? SPANS.at(-1);
  return relative.format(Math.round(seconds / length), span);
}

/** The condition of a wait and the like, beginning with a capital letter. */
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
