// Calls of the service, and the few helpers that all tabs share.

const KEY = 'parsebank-key';

// The page may be served below a prefix, so paths are taken relative to its own files.
const BASE = new URL('../', import.meta.url);

/** An error as the service tells it. */
export class ApiError extends Error {
  /**
   * @param {number} status of HTTP; 0 if no answer came
   * @param {string} type the service's `error_type`
   * @param {string} message what came, what was expected, what to do
   * @param {object} detail facts for programs
   */
  constructor(status, type, message, detail = {}) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.type = type;
    this.detail = detail;
  }
}

/** The API key that the user typed; empty if none. It is kept until the browser tab closes. */
export function apiKey() {
  return sessionStorage.getItem(KEY) ?? '';
}

export function setApiKey(key) {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

/** The address of a path of the service, such as `jobs/1`. */
export function address(path) {
  return new URL(path.replace(/^\//, ''), BASE).href;
}

/**
 * One request. Returns the answer's `Response`; throws an `ApiError` for any other outcome.
 * A refused key is announced by the event `parsebank:unauthorized` on `document`.
 */
export async function request(method, path, {body, headers = {}, signal} = {}) {
  const sent = {Accept: 'application/json', ...headers};
  if (apiKey()) sent.Authorization = `Bearer ${apiKey()}`;
  if (body !== undefined) sent['Content-Type'] = 'application/json';
  let answer;
  try {
    const content = body === undefined ? undefined : JSON.stringify(body);
    answer = await fetch(address(path), {method, headers: sent, body: content, signal});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'unreachable', `No answer came from ${BASE.host}: ${error.message}. `
      + 'See whether the service still runs, then try again.');
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  if (answer.status === 401) document.dispatchEvent(new CustomEvent('parsebank:unauthorized'));
  throw new ApiError(answer.status, told.error_type ?? `http_${answer.status}`,
    told.message ?? answer.statusText, told.detail);
}

export async function get(path, options) {
  return (await request('GET', path, options)).json();
}

export async function post(path, body, options) {
  return (await request('POST', path, {...options, body})).json();
}

/** `delete` is a word of the language. */
export async function remove(path, options) {
  return (await request('DELETE', path, options)).json();
}

/**
 * An element of HTML. Children are nodes or texts; texts are never read as HTML.
 * @param {string} tag
 * @param {object} attributes a function belongs to an event (`onclick`), `true` sets an empty
 *   attribute, and `false`, `null` and `undefined` set none
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === 'function') made.addEventListener(name.replace(/^on/, ''), value);
    else if (value === true) made.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

/** An error for its reader: what the service says, as it says it, then its `error_type`. */
export function errorBox(error) {
  const type = error instanceof ApiError ? error.type : error.name;
  return element('div', {class: 'error', role: 'alert'},
    element('span', {class: error.message.includes('\n') && 'lines'}, error.message), ' ', element('code', {}, type));
}

/** A link to a tab: `link('parse', {lang: 'en'})` is `#parse?lang=en`. */
export function link(tab, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  return `#${tab}${query ? `?${query}` : ''}`;
}
