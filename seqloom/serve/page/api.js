// Requests to the server: the session, errors as one line, streams, and a server that is away for a while.
import { t } from "./words.js";

export class Fault extends Error {
  constructor(message, status = 0, term = null) { super(message); this.status = status; this.term = term; }
}

let secret = null;
let lost = false;

const csrf = () => secret || document.cookie.match(/(?:^|;\s*)[\w-]*csrf[\w-]*=([^;]+)/i)?.[1] || "";
const tell = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));

async function ask(method, path, { body, raw, signal, accept } = {}) {
  const headers = { Accept: accept || "application/json" };
  if (method !== "GET") headers["X-CSRF-Token"] = csrf();
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (raw) headers["Content-Type"] = "application/octet-stream";
  let answer;
  try {
    answer = await fetch(path, { method, headers, signal, credentials: "same-origin",
      body: raw || (body === undefined ? undefined : JSON.stringify(body)) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    away();
    throw new Fault("no answer", 0, t("lost"));
  }
  if (answer.ok) return answer;
  throw await refusal(answer, path);
}

async function refusal(answer, path) {
  let told = null;
  try { told = (await answer.json()).error?.message; } catch { /* not JSON */ }
  if ((answer.status === 401 || answer.status === 403) && path !== "/session") tell("login");
  const retry = answer.headers.get("Retry-After");
  if (answer.status === 503 && !told) return new Fault("busy", 503, t("busy", { seconds: retry || "?" }));
  return told ? new Fault(String(told).slice(0, 600), answer.status) : new Fault("", answer.status, t("refused", { status: answer.status }));
}

export const get = async (path, options) => (await ask("GET", path, options)).json();
export const post = async (path, body, options) => (await ask("POST", path, { body, ...options })).json();
export const text = async (path) => (await ask("GET", path, { accept: "text/html" })).text();
export const upload = async (file, signal) => (await ask("POST", `/api/uploads?name=${encodeURIComponent(file.name)}`, { raw: file, signal })).json();

export async function enter(token) {
  const found = await post("/session", { token });
  secret = found.csrf || null;
}

// Server-sent events of a GET or POST: `each(event)` for every one, until [DONE] or the end.
export async function stream(path, { body, signal, each }) {
  const answer = await ask(body === undefined ? "GET" : "POST", path, { body, signal, accept: "text/event-stream" });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += value || "";
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = done ? "" : blocks.pop();
      for (const block of blocks) if (handle(block, each) === "end") return;
      if (done) return;
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof Fault) throw error;
    away();
    throw new Fault("broken off", 0, t("lost"));
  } finally {
    reader.cancel().catch(() => {});
  }
}

function handle(block, each) {
  const data = block.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).replace(/^ /, "")).join("\n");
  if (!data) return null;
  if (data === "[DONE]") return "end";
  let event;
  try { event = JSON.parse(data); } catch { event = { line: data }; }
  if (event && event.error) throw new Fault(String(event.error.message || event.error).slice(0, 600));
  for (const one of event?.events || [event]) each(typeof one === "object" && one !== null ? one : { line: String(one) });
  return null;
}

// The server is away: a banner, and a look every two seconds whether it is back.
export function away() {
  if (lost) return;
  lost = true;
  tell("lost");
  const look = async () => {
    try {
      await fetch("/health", { cache: "no-store" });
      lost = false;
      tell("back");
    } catch { setTimeout(look, 2000); }
  };
  setTimeout(look, 1000);
}
