// Tables, as the tabs beside Parse show them.

import {element} from './api.js';

/**
 * A table that scrolls by itself, so that the page never gets wider than the screen.
 * @param {string} caption
 * @param {string[]} columns
 * @param {Array[]} rows cells are texts, numbers, nodes, or lists of these; the first is the row's
 *   header
 */
export function table(caption, columns, rows) {
  const body = rows.map(([first, ...cells]) => element('tr', {},
    element('th', {scope: 'row', dir: 'auto'}, shown(first)), cells.map(cell)));
  return element('div', {class: 'scroll', tabindex: '0', role: 'group', 'aria-label': caption},
    element('table', {class: 'wide'}, element('caption', {}, caption),
      element('thead', {}, element('tr', {},
        columns.map((name) => element('th', {scope: 'col'}, name)))),
      element('tbody', {}, body)));
}

function cell(value) {
  const attributes = typeof value === 'number' ? {class: 'number'} : {dir: 'auto'};
  return element('td', attributes, shown(value));
}

function shown(value) {
  return typeof value === 'number' ? count(value) : value ?? '';
}

/** A number with separators of thousands. */
export function count(number) {
  return number.toLocaleString('en');
}

/** A label and what it says, as a list. */
export function facts(pairs) {
  return element('dl', {class: 'facts'}, pairs
    .filter(([, value]) => value !== null && value !== undefined && value !== '')
    .map(([name, value]) => element('div', {},
      element('dt', {}, name), element('dd', {dir: 'auto'}, value))));
}

/** Why the caller may not do something; nothing if it may. Roles include those before them. */
export function refusal(info, needed, what) {
  const roles = ['read', 'parse', 'admin'];
  if (roles.indexOf(info.role) >= roles.indexOf(needed)) return null;
  return element('p', {class: 'note'},
    `${what} takes a key with the role ${needed}; yours has the role ${info.role}. `,
    'The operator makes one: ', element('code', {}, `parsebank keys add NAME --role ${needed}`));
}

/** A button whose action says by itself that it runs, and what became of it. */
export function action(text, run, fail) {
  const made = element('button', {type: 'button', onclick: async () => {
    made.disabled = true;
    try {
      await run();
    } catch (error) {
      fail(error);
    } finally {
      made.disabled = false;
    }
  }}, text);
  return made;
}

/** Call a function once the address shows another view. */
export function onLeave(leave) {
  window.addEventListener('hashchange', leave, {once: true});
}
