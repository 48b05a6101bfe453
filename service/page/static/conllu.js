// CoNLL-U as a table: what the pictures show, for those who read or hear.

import {element} from './api.js';

const COLUMNS = ['form', 'lemma', 'upos', 'xpos', 'feats', 'head', 'deprel', 'deps', 'misc'];

/** The lines of one sentence: `{id, form, ..., misc}`, also of multiword tokens and empty nodes. */
export function linesOf(conllu) {
  return conllu.split('\n').filter((line) => line && !line.startsWith('#')).map((line) => {
    const [id, ...columns] = line.split('\t');
    return {id, ...Object.fromEntries(COLUMNS.map((name, at) => [name, columns[at]]))};
  });
}

/** The syntactic words among the lines. */
export function wordsOf(lines) {
  return lines.filter((line) => /^\d+$/.test(line.id));
}

/** The sentences of a document, each with its own lines and its text. */
export function sentencesOf(conllu) {
  return conllu.split(/\n\n+/).filter((block) => /^[^#]/m.test(block)).map((block) => ({
    conllu: `${block.trimEnd()}\n\n`,
    text: comment(block, 'text') || wordsOf(linesOf(block)).map(({form}) => form).join(' '),
  }));
}

/** Value of a comment `# key = value`; empty without one. */
export function comment(conllu, key) {
  const found = conllu.split('\n').find((line) => line.startsWith(`# ${key} = `));
  return found ? found.slice(key.length + 5) : '';
}

const SHOWN = [
  ['lemma', 'Lemma'], ['upos', 'UPOS'], ['xpos', 'XPOS'], ['feats', 'Features'],
  ['head', 'Head'], ['deprel', 'Relation'], ['deps', 'Enhanced'],
];

/**
 * A table with a row for each line. Columns in which no line has anything are left out. Arrow keys
 * go from word to word.
 */
export function table(lines, lang) {
  const columns = SHOWN.filter(([name]) => lines.some((line) => line[name] !== '_'));
  const forms = new Map(lines.map((line) => [line.id, line.form]));
  const rows = lines.map((line) => element('tr', {},
    element('td', {class: 'number'}, line.id),
    element('th', {scope: 'row', lang, dir: 'auto'}, word(line)),
    columns.map(([name]) => (name === 'head' ? headOf(line, forms, lang)
      : element('td', {dir: 'auto', lang: name === 'lemma' ? lang : null}, shown(line[name]))))));
  const whole = element('table', {},
    element('caption', {class: 'visually-hidden'}, 'Words'),
    element('thead', {}, element('tr', {},
      ['Id', 'Form', ...columns.map(([, title]) => title)].map((title) =>
        element('th', {scope: 'col', colspan: title === 'Head' ? 2 : null}, title)))),
    element('tbody', {}, rows));
  roving([...whole.querySelectorAll('button')]);
  return whole;
}

function word(line) {
  if (line.id.includes('-')) {
    return [line.form, ' ', element('span', {class: 'hint'}, 'multiword token')];
  }
  const made = element('button',
    {type: 'button', class: 'word', 'data-word': line.id, 'aria-pressed': 'false'}, line.form);
  return line.id.includes('.') ? [made, ' ', element('span', {class: 'hint'}, 'empty node')] : made;
}

/** Two cells: the id of the head, and its form. */
function headOf({head}, forms, lang) {
  return [element('td', {class: 'number'}, shown(head)), head === '0'
    ? element('td', {class: 'muted'}, 'root')
    : element('td', {dir: 'auto', lang}, forms.get(head) ?? '')];
}

function shown(value) {
  return value === '_' ? '' : value.replaceAll('|', ' | ');
}

/** One stop for the Tab key among many buttons; arrow keys, Home and End go between them. */
function roving(buttons) {
  const steps = {ArrowDown: 1, ArrowUp: -1, ArrowRight: 1, ArrowLeft: -1};
  buttons.forEach((one, at) => {
    one.tabIndex = at ? -1 : 0;
    one.addEventListener('keydown', (event) => {
      const last = buttons.length - 1;
      const to = {Home: 0, End: last}[event.key] ?? at + (steps[event.key] ?? NaN);
      if (Number.isNaN(to)) return;
      event.preventDefault();
      buttons[Math.min(Math.max(to, 0), last)].focus();
    });
    one.addEventListener('focus', () => {
      for (const other of buttons) other.tabIndex = other === one ? 0 : -1;
    });
  });
}
