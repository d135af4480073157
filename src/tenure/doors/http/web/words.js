// How things are written: numbers, times, shares, labels.

const SECOND = 1000;
const STEPS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

/** Write a count so that it can be read: 1,024 or 1.8 × 10¹⁹. */
export function number(value) {
  const plain = Number(value);
  if (Math.abs(plain) < 1e9) return Math.round(plain).toLocaleString("en-GB");
  const power = Math.floor(Math.log10(Math.abs(plain)));
  return `${(plain / 10 ** power).toFixed(1)} × 10${raised(power)}`;
}

function raised(power) {
  return Array.from(String(power), (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
}

/** Write a count in at most four letters. */
export function brief(value) {
  const plain = Number(value);
  if (plain < 1000) return String(plain);
  if (plain < 1e4) return `${(plain / 1000).toFixed(1)}k`;
  if (plain < 1e6) return `${Math.round(plain / 1000)}k`;
  return plain < 1e9 ? `${Math.round(plain / 1e6)}M` : "many";
}

/** Write a share; what is there is never written as nothing, nor what is short of all as all. */
export function share(part, whole) {
  if (!Number(whole)) return "–";
  const percent = (100 * Number(part)) / Number(whole);
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  if (percent < 100 && percent > 99.9) return "> 99.9 %";
  // Near both ends a whole number would say none, or all.
  const near = (percent > 0 && percent < 10) || (percent > 99 && percent < 100);
  return `${near ? percent.toFixed(1) : Math.round(percent)} %`;
}

/** Write a time as it is on the reader's clock. */
export function time(text) {
  if (!text) return "–";
  const when = new Date(text);
  const two = (value) => String(value).padStart(2, "0");
  const day = `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}`;
  return `${day} ${two(when.getHours())}:${two(when.getMinutes())}:${two(when.getSeconds())}`;
}

/** Write how long ago a time was, or how long it is until it. */
export function ago(text, now = Date.now()) {
  const seconds = Math.round((now - new Date(text).getTime()) / SECOND);
  const [name, length] = STEPS.find(([, step]) => Math.abs(seconds) >= step) || STEPS[3];
  const count = Math.floor(Math.abs(seconds) / length);
  if (count === 0) return "just now";
  const words = `${count} ${name}${count === 1 ? "" : "s"}`;
  return seconds >= 0 ? `${words} ago` : `in ${words}`;
}

/** Write a time and how long ago it was. */
export function since(text) {
  return text ? `${time(text)} (${ago(text)})` : "an unknown time";
}

/** Write labels as they are searched for. */
export function labels(said) {
  return Object.entries(said || {}).map(([name, value]) => (value === "" ? name : `${name}=${value}`));
}

/** Write on whose word something was done, and by which request. */
export function byText(actor, request) {
  return [actor, request && `request ${request}`].filter(Boolean).join(", ");
}

/** Write one of something, or many of it. */
export function count(value, one, many = `${one}s`) {
  return `${number(value)} ${Number(value) === 1 ? one : many}`;
}
