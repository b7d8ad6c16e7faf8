// Rows that were pasted: JSON, JSON lines, CSV or TSV with a header, or one text per line. And results as CSV.

// `columns`: the names that the model reads. { rows, kind }
export function read(text, columns) {
  const pasted = text.replace(/^\ufeff/, "").trim();
  if (!pasted) return { rows: [], kind: "" };
  const found = json(pasted);
  if (found) return found;
  for (const [separator, kind] of [["\t", "TSV"], [",", "CSV"]]) {
    const table = cells(pasted, separator);
    const head = table[0].map((name) => name.trim());
    if (table.length > 1 && (head.some((name) => columns.includes(name)) || (columns.length === 0 && head.length > 1)))
      return { rows: table.slice(1).map((line) => Object.fromEntries(head.map((name, n) => [name, value(line[n] ?? "")]))), kind };
  }
  return { rows: pasted.split(/\r?\n/).filter((line) => line.trim()).map((line) => lined(line, columns)), kind: "lines" };
}

// A line with tabs fills several columns, one without them the first.
function lined(line, columns) {
  const parts = columns.length > 1 ? line.split("\t") : [line];
  return Object.fromEntries(parts.slice(0, Math.max(1, columns.length)).map((part, n) => [columns[n] || "text", part]));
}

function json(text) {
  if (!/^[[{]/.test(text)) return null;
  try {
    const found = JSON.parse(text);
    const rows = Array.isArray(found) ? found : [found];
    if (rows.every((row) => row && typeof row === "object" && !Array.isArray(row))) return { rows, kind: "JSON" };
    if (rows.every((row) => typeof row === "string")) return { rows: rows.map((row) => ({ text: row })), kind: "JSON" };
    return null;
  } catch { /* perhaps one object on each line */ }
  try {
    const rows = text.split(/\r?\n/).filter((line) => line.trim()).map((line) => JSON.parse(line));
    return rows.every((row) => row && typeof row === "object") ? { rows, kind: "JSON" } : null;
  } catch { return null; }
}

// RFC 4180: quoted fields may hold the separator, line breaks and doubled quotation marks.
function cells(text, separator) {
  const rows = [[]];
  let [field, quoted] = ["", false];
  for (let n = 0; n < text.length; n += 1) {
    const c = text[n];
    if (quoted && c === '"' && text[n + 1] === '"') { field += '"'; n += 1; }
    else if (c === '"' && (quoted || field === "")) quoted = !quoted;
    else if (!quoted && c === separator) { rows[rows.length - 1].push(field); field = ""; }
    else if (!quoted && (c === "\n" || c === "\r")) {
      if (c === "\r" && text[n + 1] === "\n") n += 1;
      rows[rows.length - 1].push(field);
      field = "";
      rows.push([]);
    } else field += c;
  }
  rows[rows.length - 1].push(field);
  return rows.filter((row) => row.length > 1 || row[0].trim());
}

const value = (text) => (/^-?\d+(\.\d+)?([eE][-+]?\d+)?$/.test(text.trim()) && text.trim().length < 16 ? Number(text) : text);

// A text that a spreadsheet would take for a formula begins with an apostrophe, as in files of `seqloom predict`.
const harmless = (text) => (/^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(text) ? `'${text}` : text);

export function csv(rows) {
  const flat = rows.map(flatten);
  const columns = [...new Set(flat.flatMap((row) => Object.keys(row)))];
  const quote = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const shown = (one) => quote(harmless(one === null || one === undefined ? "" : String(one)));
  return `${[columns, ...flat.map((row) => columns.map((name) => row[name]))].map((line) => line.map(shown).join(",")).join("\r\n")}\r\n`;
}

// An object becomes a column for each of its keys, a list is written as JSON.
function flatten(row) {
  const found = {};
  for (const [name, one] of Object.entries(row)) {
    if (Array.isArray(one)) found[name] = JSON.stringify(one);
    else if (one && typeof one === "object") for (const [key, inner] of Object.entries(one)) found[`${name}_${key}`] = typeof inner === "object" ? JSON.stringify(inner) : inner;
    else found[name] = one;
  }
  return found;
}
