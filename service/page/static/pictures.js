// Pictures of the service in the page: drawn by `POST /draw`, zoomed, marked and saved here.

import {element} from './api.js';
import {copyText, download, menu, svgAsPng, svgElement} from './save.js';

const SVG = 'image/svg+xml';
const ZOOMS = [0.25, 0.33, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 3];
const FIT = 'fit';
const CAPTIONS = {
  arcs: 'Tree as arcs',
  hierarchy: 'Tree as a hierarchy',
  wordpieces: 'Wordpieces under their words',
};
const RIGHT_TO_LEFT =
  /^(?:Wordpieces: )?\P{L}*[\p{sc=Arabic}\p{sc=Hebrew}\p{sc=Syriac}\p{sc=Thaana}\p{sc=Nko}]/u;

/**
 * A figure with a picture, to be zoomed and saved.
 * @param {string} svg
 * @param {string} name of the picture and of its files
 * @param {string} lang language of the text, for the choice of its glyphs
 * @param {object} zooms the zoom of each picture by its name, which outlives the figure
 */
export function figure(svg, name, lang, zooms) {
  const drawn = document.importNode(svgElement(svg), true);
  const [width, height] = ['width', 'height'].map((side) => Number(drawn.getAttribute(side)));
  const frame = element('div', {class: 'scroll', tabindex: '0', role: 'group', lang,
    'aria-label': `${CAPTIONS[name]}, scrollable`,
    dir: RIGHT_TO_LEFT.test(drawn.querySelector('title').textContent) ? 'rtl' : 'ltr'}, drawn);
  const zoom = zooming(frame, name, zooms, {
    fit: () => (frame.clientWidth - 2 * parseFloat(getComputedStyle(frame).paddingLeft)) / width,
    draw: (scale) => {
      drawn.setAttribute('width', width * scale);
      drawn.setAttribute('height', height * scale);
    },
  });
  return element('figure', {'data-picture': name},
    element('figcaption', {}, element('span', {}, CAPTIONS[name]), zoom,
      menu('Save', `Save the picture: ${CAPTIONS[name]}`,
        saving(name, () => svg, () => svgAsPng(svg)))), frame);
}

/** The actions of a picture's menu; `svg` and `png` make the two forms of it. */
export function saving(name, svg, png) {
  return [
    ['Copy SVG', async (tell) => copyText(await svg(), `${name}.svg`, tell)],
    ['Save SVG', async (tell) => download(await svg(), `${name}.svg`, SVG, tell)],
    ['Save PNG', async (tell) => download(await png(), `${name}.png`, 'image/png', tell)],
  ];
}

/**
 * Buttons that zoom what a frame shows, around the middle of what is in view.
 * @param {object} picture `fit()` is the scale at which it is as wide as the frame, `draw(scale)`
 *   draws it
 */
export function zooming(frame, name, zooms, {fit, draw}) {
  let scale = 1;
  const shown = button('100 %', () => choose(1));
  function choose(zoom) {
    zooms[name] = zoom;
    apply();
  }
  function apply() {
    const to = zooms[name] === FIT ? Math.min(1, Math.max(0.05, fit())) : zooms[name] ?? 1;
    const middle = (Math.abs(frame.scrollLeft) + frame.clientWidth / 2) * (to / scale);
    const side = getComputedStyle(frame).direction === 'rtl' ? -1 : 1;
    scale = to;
    draw(scale);
    frame.scrollLeft = side * (middle - frame.clientWidth / 2);
    shown.textContent = `${Math.round(scale * 100)} %`;
    shown.setAttribute('aria-label', `${shown.textContent}: back to 100 %`);
  }
  const step = (sign) => {
    const further = ZOOMS.filter((one) => sign * (one - scale) > 0.005);
    if (further.length) choose(sign > 0 ? further[0] : further.at(-1));
  };
  new ResizeObserver(apply).observe(frame);
  const buttons = [['−', 'Smaller', () => step(-1)], ['+', 'Larger', () => step(1)]].map(
    ([sign, label, act]) => element('button', {type: 'button', 'aria-label': label, onclick: act}, sign));
  return element('span', {class: 'zoom', role: 'group', 'aria-label': 'Zoom'},
    buttons[0], shown, buttons[1], button('Fit', () => choose(FIT)));
}

export function button(text, action) {
  return element('button', {type: 'button', onclick: action}, text);
}

/** Marks the same words in everything below `root` that has `data-word`; Escape lets go of them. */
export class Marks {
  #root;
  #pinned = '';
  #shown = '';

  constructor(root) {
    this.#root = root;
    // What is painted changes its words under the pointer, so coming over it says too little.
    root.addEventListener('pointermove', (event) => this.#hover(event.target));
    root.addEventListener('pointerleave', () => this.#show(this.#pinned));
    root.addEventListener('focusin', (event) => {
      this.#hover(event.target);
      if (event.target.matches('button.word')) this.#bringIntoView(wordsOf(event.target));
    });
    root.addEventListener('words', (event) => this.#hover(event.target));
    root.addEventListener('click', (event) => this.#pin(event.target));
    root.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.keep('');
    });
  }

  #hover(target) {
    this.#show(wordsOf(target) || this.#pinned);
  }

  /** Keep a word marked until it, or another one, is clicked. */
  #pin(target) {
    const words = wordsOf(target);
    if (!words) return;
    this.keep(this.#pinned === words ? '' : words);
  }

  /** Keep these words marked, their ids separated by spaces; none for an empty text. */
  keep(words) {
    this.#pinned = words;
    this.#shown = words;
    this.refresh();
    this.#bringIntoView(words.split(' ')[0]);
  }

  /** Mark what is new, too. */
  refresh() {
    for (const pressed of this.#root.querySelectorAll('button[data-word]')) {
      pressed.setAttribute('aria-pressed', String(pressed.dataset.word === this.#pinned));
    }
    this.#mark(this.#shown);
  }

  #show(words) {
    if (words === this.#shown) return;
    this.#shown = words;
    this.#mark(words);
  }

  #mark(words) {
    const chosen = words ? words.split(' ') : [];
    for (const shown of this.#root.querySelectorAll('[data-word]')) {
      shown.classList.toggle('marked', isAbout(shown.dataset.word.split(' '), chosen));
    }
    for (const painted of this.#root.querySelectorAll('canvas')) {
      painted.dispatchEvent(new CustomEvent('marked', {detail: chosen}));
    }
  }

  /** Scroll the frames of pictures, not the page, to a word. */
  #bringIntoView(word) {
    for (const frame of this.#root.querySelectorAll('figure .scroll')) {
      const node = frame.querySelector(`g[data-word="${CSS.escape(word)}"]:not([data-arc])`);
      if (!node) continue;
      const [one, view] = [node, frame].map((some) => some.getBoundingClientRect());
      if (one.left < view.left || one.right > view.right) {
        frame.scrollLeft += (one.left + one.right - view.left - view.right) / 2;
      }
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
export function isAbout(own, chosen) {
  if (!chosen.length) return false;
  if (own.length === 1 || chosen.length > 1) return own.every((word) => chosen.includes(word));
  return own.includes(chosen[0]);
}
