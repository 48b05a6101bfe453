// A parse: its tree, or two trees side by side; its words; its pieces and matrices.

import {element, errorBox, post} from './api.js';
import {linesOf, table, wordsOf} from './conllu.js';
import {Marks, button, figure} from './pictures.js';
import {copyText, download} from './save.js';

const MATRICES = ['depth', 'distance', 'ancestor'];
const LAYOUTS = {arcs: 'arcs', hierarchy: 'hierarchy'};

/**
 * @param {Element} box takes the result
 * @param {object} view `documents` (one, or two to compare), `asked` (the form's values),
 *   `remember` (puts changed values into the link), `tell` (says what is shown), `signal`, `answer`
 *   (asks for the JSON)
 */
export async function showResult(box, shown) {
  const saved = element('span', {role: 'status', class: 'hint'});
  const view = {...shown, tellSaved: (text) => { saved.textContent = text; }};
  const {asked, remember} = view;
  const words = element('div', {class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Words'});
  const parts = {
    chooser: element('div', {class: 'row', role: 'group', 'aria-label': 'Sentence'}),
    trees: element('div', {class: 'trees'}),
    difference: element('div'),
    pieces: element('div'),
    words,
    matrices: element('div', {class: 'derived'}),
  };
  box.append(
    saving(view, saved),
    element('div', {class: 'row'}, parts.chooser, layouts(asked, (layout) => {
      remember({layout});
      drawTrees(view, parts).catch((error) => parts.trees.append(errorBox(error)));
    })),
    parts.trees, parts.difference,
    asked.tokenizer
      ? section('pieces', `Wordpieces of ${asked.tokenizer}`, view, parts.pieces) : '',
    element('div', {class: 'lower'},
      section('words', 'Words', view, parts.words),
      section('matrices', `Matrices over the ${asked.tokenizer ? 'wordpieces' : 'words'}`, view,
        parts.matrices)));
  new Marks(box);
  await showSentence(view, parts);
}

/** A part that follows from the first document; which one that is, is said where there are two. */
function section(id, title, {documents}, part) {
  return element('section', {'aria-labelledby': id},
    element('h2', {id}, documents.length > 1 ? `${title}, by ${documents[0].name}` : title), part);
}

async function showSentence(view, parts) {
  const texts = await drawTrees(view, parts);
  if (!texts) return;
  showChooser(view, parts, texts);
  const count = texts.length === 1 ? '1 sentence' : `${texts.length} sentences`;
  const by = view.documents.map(({name}) => name).join(' and ');
  view.tell(`${count}, analysed by ${by}.`);
  await drawDerived(view, parts);
}

/** Which sentence is shown, where there are several. */
function showChooser(view, parts, texts) {
  if (texts.length < 2) return;
  const at = Number(view.asked.sentence);
  const go = (to) => {
    view.remember({sentence: String(to)});
    showSentence(view, parts).catch((error) => parts.trees.append(errorBox(error)));
  };
  const select = element('select', {id: 'sentence', onchange: () => go(select.value)},
    texts.map((text, index) => element('option', {value: index + 1, selected: index + 1 === at},
      `${index + 1}. ${text.slice(0, 60)}`)));
  parts.chooser.replaceChildren(
    element('label', {for: 'sentence'}, 'Sentence'), select,
    step('Previous', at - 1, at > 1, go), step('Next', at + 1, at < texts.length, go));
}

function step(text, to, isPossible, go) {
  const made = button(text, () => go(to));
  made.disabled = !isPossible;
  return made;
}

function layouts(asked, choose) {
  return element('fieldset', {class: 'row'}, element('legend', {}, 'Tree as'),
    Object.entries(LAYOUTS).map(([layout, name]) => element('label', {class: 'inline'},
      element('input', {type: 'radio', name: 'layout', value: layout,
        checked: layout === asked.layout, onchange: () => choose(layout)}), ` ${name}`)));
}

function drawing(view, conllu, pictures) {
  const {sentence, tokenizer, policy} = view.asked;
  const body = {conllu, pictures, sentence: Number(sentence) - 1};
  if (pictures.includes('wordpieces')) Object.assign(body, {tokenizer, policy});
  return post('draw', body, {signal: view.signal});
}

/** Draw the trees and the table of words; returns the texts of the first document. */
async function drawTrees(view, parts) {
  const {asked, documents} = view;
  const layout = asked.layout in LAYOUTS ? asked.layout : 'arcs';
  const outcomes = await Promise.allSettled(
    documents.map(({conllu}) => drawing(view, conllu, [layout])));
  const drawn = outcomes.map(({value}) => value);
  const lines = drawn.map((one) => (one ? linesOf(one.conllu) : []));
  parts.trees.replaceChildren(...outcomes.map(({value, reason}, at) => element('section',
    {'aria-label': `Tree by ${documents[at].name}`},
    documents.length > 1 ? element('h2', {}, documents[at].name) : null,
    value ? figure(value.pictures[layout], layout, asked.lang, view.tellSaved) : errorBox(reason))));
  if (documents.length > 1) parts.difference.replaceChildren(difference(documents, lines, parts));
  if (!drawn[0]) {
    view.tell('');
    return null;
  }
  parts.words.replaceChildren(table(lines[0], asked.lang));
  return drawn[0].texts;
}

async function drawDerived(view, parts) {
  const pictures = view.asked.tokenizer ? ['wordpieces', ...MATRICES] : MATRICES;
  parts.matrices.setAttribute('aria-busy', 'true');
  try {
    const drawn = await drawing(view, view.documents[0].conllu, pictures);
    const made = pictures.map((name) =>
      figure(drawn.pictures[name], name, view.asked.lang, view.tellSaved));
    parts.matrices.replaceChildren(...made.splice(-MATRICES.length));
    parts.pieces.replaceChildren(...made);
  } catch (error) {
    if (error.name === 'AbortError') return;
    parts.pieces.replaceChildren();
    parts.matrices.replaceChildren(errorBox(error));
  } finally {
    parts.matrices.removeAttribute('aria-busy');
  }
}

/** In which words two trees differ. */
function difference(documents, lines, parts) {
  const [ours, theirs] = lines.map(wordsOf);
  const forms = (words) => words.map(({form}) => form).join('\u0000');
  if (forms(ours) !== forms(theirs)) {
    for (const shown of parts.trees.lastChild.querySelectorAll('[data-word]')) {
      shown.removeAttribute('data-word');  // an id there is another word
    }
    return element('p', {}, 'The two have other words in this sentence, '
      + `${ours.length} and ${theirs.length}; their relations are not compared.`);
  }
  const same = ours.filter(({head}, at) => head === theirs[at].head).length;
  const pairs = ours.map((word, at) => [word, theirs[at]])
    .filter(([one, other]) => one.head !== other.head || one.deprel !== other.deprel);
  const counted = `Of ${ours.length} words, ${same} have the same head, `
    + `${ours.length - pairs.length} the same head and relation.`;
  if (!pairs.length) return element('p', {}, counted);
  const names = documents.map(({name}) => name);
  const relation = (word, words) => `${word.deprel} of ${words[word.head - 1]?.form ?? '(root)'}`;
  return element('div', {},
    element('p', {}, counted),
    element('div', {class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Differences'},
      element('table', {}, element('caption', {}, 'Where they differ'),
        element('thead', {}, element('tr', {},
          ['Word', ...names].map((name) => element('th', {scope: 'col'}, name)))),
        element('tbody', {}, pairs.map(([one, other]) => element('tr', {'data-word': one.id},
          element('th', {scope: 'row', dir: 'auto'}, `${one.id} ${one.form}`),
          element('td', {dir: 'auto'}, relation(one, ours)),
          element('td', {dir: 'auto'}, relation(other, theirs))))))));
}

/** Copies and files of the whole answer of the first parser, and a link to the view. */
function saving(view, saved) {
  const {documents, asked, tellSaved: tell} = view;
  const {conllu} = documents[0];
  const json = (use) => async () => {
    try {
      const text = JSON.stringify(await view.answer(), null, 1);
      use(text);
    } catch (error) {
      tell(`${error.type ?? error.name}: ${error.message}`);
    }
  };
  const parsed = asked.kind === 'conllu' ? [] : [
    button('Copy JSON', json((text) => copyText(text, 'parse.json', tell))),
    button('Save JSON', json((text) => download(text, 'parse.json', 'application/json', tell))),
  ];
  return element('div', {class: 'row save', role: 'group', 'aria-label': 'Save the whole text'},
    documents.length > 1 ? element('span', {class: 'hint'}, `Analysis by ${documents[0].name}:`) : '',
    button('Copy CoNLL-U', () => copyText(conllu, 'parse.conllu', tell)),
    button('Save CoNLL-U', () => download(conllu, 'parse.conllu', 'text/plain', tell)),
    parsed,
    button('Copy link', () => copyText(location.href, 'link.txt', tell)), saved);
}
