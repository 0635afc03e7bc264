// Requests to the server behind this page.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The answer of `api/<path>`; `Refused` with the server's message if there is none. */
export async function read(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined);
  const response = await fetch(`api/${path}?${new URLSearchParams(given)}`, { credentials: "same-origin" });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, message(response, answer));
  return answer;
}

function message(response, answer) {
  if (response.status === 401) return "You are not logged in, or your session has ended.";
  if (typeof answer.detail === "string") return answer.detail;
  return `The server answered with status ${response.status}.`;
}
