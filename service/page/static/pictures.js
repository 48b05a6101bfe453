// Pictures of the service in the page: drawn by `POST /draw`, marked and saved here.

import {element} from './api.js';
import {copyText, download, svgAsPng, svgElement} from './save.js';

const SVG = 'image/svg+xml';

/**
 * A figure with a picture and ways to save it.
 * @param {string} svg
 * @param {string} name of the picture and of its files
 * @param {string} lang language of the text, for the choice of its glyphs
 * @param {function(string)} tell says what was done
 */
export function figure(svg, name, lang, tell) {
  const drawn = svgElement(svg);
  const title = drawn.querySelector('title').textContent;
  const frame = element('div',
    {class: 'scroll', tabindex: '0', role: 'group', 'aria-label': `${name}, scrollable`, lang,
      dir: name in MATRICES || !RIGHT_TO_LEFT.test(title) ? 'ltr' : 'rtl'});
  frame.append(document.importNode(drawn, true));
  return element('figure', {'data-picture': name},
    element('figcaption', {}, caption(name, title)), frame,
    element('div', {class: 'row save', role: 'group', 'aria-label': `Save the picture: ${name}`},
      button('Copy SVG', () => copyText(svg, `${name}.svg`, tell)),
      button('Save SVG', () => download(svg, `${name}.svg`, SVG, tell)),
      button('Save PNG', async () =>
        download(await svgAsPng(svg), `${name}.png`, 'image/png', tell))));
}

const RIGHT_TO_LEFT =
  /^(?:Wordpieces: )?\P{L}*[\p{sc=Arabic}\p{sc=Hebrew}\p{sc=Syriac}\p{sc=Thaana}\p{sc=Nko}]/u;

export function button(text, action) {
  return element('button', {type: 'button', onclick: action}, text);
}

const MATRICES = {
  distance: 'Distance: edges between row and column',
  depth: 'Depth: edges from the root',
  ancestor: 'Ancestor: is the column the row itself, or above it?',
};
const CAPTIONS = {
  arcs: 'Tree as arcs',
  hierarchy: 'Tree as a hierarchy',
  wordpieces: 'Wordpieces under their words',
  ...MATRICES,
};

function caption(name, title) {
  const cut = /\(the first \d+ of \d+\)/.exec(title);
  return `${CAPTIONS[name]}${cut ? ` ${cut[0]}` : ''}`;
}

/** Marks the same words in everything below `root` that has `data-word`. */
export class Marks {
  #root;
  #pinned = '';

  constructor(root) {
    this.#root = root;
    root.addEventListener('pointerover', (event) => this.#hover(event.target));
    root.addEventListener('pointerleave', () => this.#show(this.#pinned));
    root.addEventListener('focusin', (event) => this.#hover(event.target));
    root.addEventListener('click', (event) => this.#pin(event.target));
  }

  #hover(target) {
    this.#show(wordsOf(target) || this.#pinned);
  }

  /** Keep a word marked until it, or another one, is clicked. */
  #pin(target) {
    const words = wordsOf(target);
    if (!words) return;
    this.#pinned = this.#pinned === words ? '' : words;
    for (const pressed of this.#root.querySelectorAll('button[data-word]')) {
      pressed.setAttribute('aria-pressed', String(pressed.dataset.word === this.#pinned));
    }
    this.#show(this.#pinned || words);
  }

  #show(words) {
    const chosen = words ? words.split(' ') : [];
    for (const shown of this.#root.querySelectorAll('[data-word]')) {
      shown.classList.toggle('marked', isAbout(shown.dataset.word.split(' '), chosen));
    }
  }
}

function wordsOf(target) {
  return target.closest?.('[data-word]')?.dataset.word ?? '';
}

/**
 * Whether an element is to be marked: one of a single word if the word is chosen; one of several
 * (an arc, a cell, a multiword token) if it touches the only chosen word, or has no other words
 * than the chosen ones.
 */
function isAbout(own, chosen) {
  if (!chosen.length) return false;
  if (own.length === 1 || chosen.length > 1) return own.every((word) => chosen.includes(word));
  return own.includes(chosen[0]);
}
