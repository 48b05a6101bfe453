// A parse: its tree, or two trees side by side; its words; its pieces and matrices.

import {element, errorBox, post} from './api.js';
import {linesOf, sentencesOf, table, wordsOf} from './conllu.js';
import {MATRICES, heatMap} from './heatmap.js';
import {Marks, button, figure} from './pictures.js';
import {copyText, download, menu} from './save.js';

const LAYOUTS = ['arcs', 'hierarchy'];

/**
 * @param {Element} box takes the result
 * @param {object} shown `documents` (one, or two to compare: `name`, `conllu`, and `isGiven` if a
 *   user wrote it), `asked` (the form's values), `remember` (puts changed values into the
 *   link), `tell` (says what is shown), `signal`, `answer` (asks for the JSON; without it there is
 *   none), `onTree` (called once the tree is there)
 */
export async function showResult(box, shown) {
  const view = {...shown, marks: new Marks(box), zooms: {}, matrices: null};
  const {asked, documents, remember} = view;
  for (const one of documents) one.sentences = sentencesOf(one.conllu);
  const parts = {
    trees: element('div', {class: 'trees'}),
    difference: element('div'),
    pieces: element('div'),
    words: element('div', {class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Words'}),
    matrices: element('div'),
  };
  const again = (draw) => draw(view, parts).catch((error) => {
    if (error.name !== 'AbortError') parts.trees.append(errorBox(error));
  });
  parts.matrices.append(...Object.keys(MATRICES).map((name) => matrixPart(name, view, parts)));
  box.append(
    element('div', {class: 'row'},
      chooser(documents[0].sentences, Number(asked.sentence), (sentence) => {
        view.marks.keep('');
        remember({sentence: String(sentence), words: ''});
        again(showSentence);
      }),
      layouts(asked, (layout) => {
        remember({layout});
        again(drawTrees);
      }),
      menu('Save text', 'Save text: CoNLL-U, JSON or the link', saving(view))),
    parts.trees, parts.difference,
    asked.tokenizer
      ? section('pieces', `Wordpieces of ${asked.tokenizer}`, view, parts.pieces) : '',
    element('div', {class: 'lower'},
      section('words', 'Words', view, [
        element('p', {class: 'hint'}, 'Arrow keys go from word to word; Enter keeps one marked, '
          + 'Escape lets go of it.'), parts.words]),
      section('matrices', `Matrices over the ${asked.tokenizer ? 'wordpieces' : 'words'}`, view,
        parts.matrices)));
  await showSentence(view, parts);
}

/** A part that follows from the first document; which one that is, is said where there are two. */
function section(id, title, {documents}, part) {
  return element('section', {'aria-labelledby': id},
    element('h2', {id}, documents.length > 1 ? `${title}, by ${documents[0].name}` : title), part);
}

/** Show the sentence that is asked for; what is still drawn of another one is given up. */
async function showSentence(view, parts) {
  view.signalOfDerived = renew(view, 'derived');
  view.matrices = null;
  if (!await drawTrees(view, parts)) return;
  const {length} = view.documents[0].sentences;
  const names = view.documents.map(({name}) => name).join(' and ');
  const source = view.documents[0].isGiven ? 'given as CoNLL-U' : `analysed by ${names}`;
  view.tell(`${length === 1 ? '1 sentence' : `${length} sentences`}, ${source}.`);
  view.onTree?.();
  if (view.asked.words) view.marks.keep(view.asked.words);
  await drawDerived(view, parts);
}

/** Which sentence is shown, where there are several. */
function chooser(sentences, first, go) {
  if (sentences.length < 2) return '';
  const select = element('select', {id: 'sentence', onchange: () => show(Number(select.value))},
    sentences.map(({text}, at) =>
      element('option', {value: at + 1}, `${at + 1}. ${text.slice(0, 60)}`)));
  // A button that is disabled while it has the focus loses it.
  const isOff = (one) => one.getAttribute('aria-disabled') === 'true';
  const step = (text, by) => {
    const made = button(text, () => {
      if (!isOff(made)) show(Number(select.value) + by);
    });
    return made;
  };
  const [previous, next] = [step('Previous', -1), step('Next', 1)];
  const mark = (at) => {
    select.value = at;
    previous.setAttribute('aria-disabled', String(at <= 1));
    next.setAttribute('aria-disabled', String(at >= sentences.length));
  };
  const show = (at) => {
    mark(at);
    go(at);
  };
  mark(first);
  return element('div', {class: 'row chooser', role: 'group', 'aria-label': 'Sentence'},
    element('label', {for: 'sentence', class: 'visually-hidden'}, 'Sentence'),
    select, previous, next);
}

function layouts(asked, choose) {
  return element('fieldset', {class: 'row'}, element('legend', {}, 'Tree as'),
    LAYOUTS.map((layout) => element('label', {class: 'inline'},
      element('input', {type: 'radio', name: 'layout', value: layout,
        checked: layout === asked.layout, onchange: () => choose(layout)}), ` ${layout}`)));
}

/** Give up what is still being drawn of the trees, or of what is derived; returns the new signal. */
function renew(view, what) {
  view[what]?.abort();
  view[what] = new AbortController();
  return AbortSignal.any([view[what].signal, view.signal].filter(Boolean));
}

/**
 * Draw a tree from the lines of its sentence alone. Typed CoNLL-U is sent as a whole once, so that
 * each of its faults is told with its line.
 */
async function drawTree(view, one, layout, signal) {
  const sentence = Number(view.asked.sentence) - 1;
  const lines = (one.isChecked || !one.isGiven) && one.sentences[sentence]?.conllu;
  const which = lines ? {conllu: lines} : {conllu: one.conllu, sentence};
  const drawn = await post('draw', {...which, pictures: [layout]}, {signal});
  one.isChecked = true;
  return drawn;
}

/** Draw the trees and the table of words; returns whether the first document has a tree. */
async function drawTrees(view, parts) {
  const {asked, documents} = view;
  const signal = renew(view, 'trees');
  const layout = LAYOUTS.includes(asked.layout) ? asked.layout : LAYOUTS[0];
  const outcomes = await Promise.allSettled(documents.map((one) => drawTree(view, one, layout, signal)));
  signal.throwIfAborted();
  const lines = outcomes.map(({value}) => (value ? linesOf(value.conllu) : []));
  parts.trees.replaceChildren(...outcomes.map(({value, reason}, at) => element('section',
    {'aria-label': `Tree by ${documents[at].name}`},
    documents.length > 1 ? element('h2', {}, documents[at].name) : null,
    value ? figure(value.pictures[layout], layout, asked.lang, view.zooms) : errorBox(reason))));
  if (documents.length > 1) parts.difference.replaceChildren(difference(documents, lines, parts));
  if (outcomes[0].reason) {
    view.tell('');
    return false;
  }
  parts.words.replaceChildren(table(lines[0], asked.lang));
  view.marks.refresh();
  return true;
}

/** Draw the wordpieces, and the matrices that are open: the document is sent once for all. */
async function drawDerived(view, parts) {
  const {asked} = view;
  const all = [...parts.matrices.children];
  if (asked.tokenizer) {
    const pictures = ['wordpieces'];
    const isOpen = all.some((part) => part.open) || asked.matrices;
    const drawn = derive(view, {pictures, matrices: isOpen ? Object.keys(MATRICES) : []});
    if (isOpen) view.matrices = drawn.then(({matrices}) => matrices);
    fill(view, parts.pieces, drawn.then((answer) =>
      figure(answer.pictures.wordpieces, 'wordpieces', asked.lang, view.zooms)));
  }
  const wanted = asked.matrices?.split(',') ?? [];
  for (const part of all) {
    if (part.open) part.draw();
    else part.open = wanted.includes(part.dataset.name);  // which draws it
  }
}

/** What follows from the whole document, for the sentence that is shown. */
function derive(view, wanted) {
  const {sentence, tokenizer, policy} = view.asked;
  const by = tokenizer ? {tokenizer, policy} : {};
  const {conllu} = view.documents[0];
  return post('draw', {conllu, sentence: Number(sentence) - 1, ...by, ...wanted},
    {signal: view.signalOfDerived});
}

/** A matrix that is asked for and drawn when it is opened. */
function matrixPart(name, view, parts) {
  const content = element('div');
  const made = element('details', {'data-name': name},
    element('summary', {}, MATRICES[name]), content);
  const svg = async () => (await derive(view, {pictures: [name]})).pictures[name];
  made.draw = () => {
    view.matrices ??= derive(view, {pictures: [], matrices: Object.keys(MATRICES)})
      .then(({matrices}) => matrices);
    fill(view, content, view.matrices.then((matrices) =>
      heatMap(name, matrices, {lang: view.asked.lang, zooms: view.zooms, svg})));
  };
  made.addEventListener('toggle', () => {
    const open = [...parts.matrices.children].filter((part) => part.open);
    view.remember({matrices: open.map((part) => part.dataset.name).join(',')});
    if (!made.open) content.replaceChildren();
    else if (!content.hasChildNodes()) made.draw();
  });
  return made;
}

/** Show what comes, or why it does not. */
async function fill(view, part, coming) {
  part.setAttribute('aria-busy', 'true');
  try {
    part.replaceChildren(await coming);
    view.marks.refresh();
  } catch (error) {
    if (error.name === 'AbortError') return;
    part.replaceChildren(errorBox(error));
  }
  part.removeAttribute('aria-busy');
}

/** In which words two trees differ, said in a table and marked in both pictures. */
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
  for (const [{id}] of pairs) {
    for (const drawn of parts.trees.querySelectorAll(`[data-arc="${id}"]`)) {
      drawn.classList.add('differs');
    }
  }
  const names = documents.map(({name}) => name);
  const relation = ({deprel, head}, words) => (words[head - 1]
    ? [`${deprel} of `, numbered(words[head - 1])] : deprel);
  return element('div', {},
    element('p', {}, `${counted} Where they differ, lines are thick and labels bold.`),
    element('div', {class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Differences'},
      element('table', {}, element('caption', {}, 'Where they differ'),
        element('thead', {}, element('tr', {},
          ['Word', ...names].map((name) => element('th', {scope: 'col'}, name)))),
        element('tbody', {}, pairs.map(([one, other]) => element('tr', {'data-word': one.id},
          element('th', {scope: 'row'}, numbered(one)),
          element('td', {}, relation(one, ours)),
          element('td', {}, relation(other, theirs))))))));
}

/** The id of a word and its form, apart from each other. */
function numbered({id, form}) {
  return [element('span', {class: 'hint'}, id), ' ', element('bdi', {}, form)];
}

/** Copies and files of the whole answer of the first parser, and a link to the view. */
function saving({documents, asked, answer}) {
  const [{conllu}] = documents;
  const json = async () => JSON.stringify(await answer(), null, 1);
  const parsed = asked.kind === 'conllu' ? [] : [
    ['Copy JSON', async (tell) => copyText(await json(), 'parse.json', tell)],
    ['Save JSON', async (tell) => download(await json(), 'parse.json', 'application/json', tell)],
  ];
  return [
    ['Copy link', (tell) => copyText(location.href, 'link.txt', tell)],
    ['Copy CoNLL-U', (tell) => copyText(conllu, 'parse.conllu', tell)],
    ['Save CoNLL-U', (tell) => download(conllu, 'parse.conllu', 'text/plain', tell)],
    ...parsed,
  ];
}
