// Matrices as heat maps on a canvas: only what is in view is painted, labels stay in view.

import {element} from './api.js';
import {isAbout, saving, zooming} from './pictures.js';
import {menu} from './save.js';

export const MATRICES = {
  depth: 'Depth: edges from the root',
  distance: 'Distance: edges between row and column',
  ancestor: 'Ancestor: is the column the row itself, or above it?',
};
const CELL = 22;  // pixels at 100 %
const READABLE = 15;  // pixels of a cell that has room for its value
const FONT = '11px system-ui, "Noto Sans", "DejaVu Sans", sans-serif';
const LABEL = 120;  // pixels of the longest label
const LARGEST_AREA = 6e7;  // of a saved picture, in pixels
const STEPS = {ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1]};

/**
 * A figure with a heat map.
 * @param {string} name of the matrix
 * @param {object} matrices `labels`, `words`, `values` and `total`, as `POST /draw` answers them
 * @param {object} options `lang`, `zooms` (see `figure`), and `svg`, which makes the SVG to save
 */
export function heatMap(name, {labels, words, values, total}, {lang, zooms, svg}) {
  const rows = name === 'depth' ? [values[name]] : values[name];
  const rowLabels = name === 'depth' ? [''] : labels;
  const rowWords = name === 'depth' ? [''] : words;
  const largest = Math.max(1, ...rows.flat().map(Number));
  const canvas = element('canvas', {role: 'img', 'aria-label': MATRICES[name]});
  const space = element('div', {}, canvas);
  const frame = element('div', {class: 'scroll heat', tabindex: '0', role: 'group', lang, dir: 'ltr',
    'aria-label': `${MATRICES[name]}. Arrow keys go from cell to cell.`}, space);
  const told = element('output', {class: 'hint'});
  const margin = marginOf(labels, rowLabels);
  let cell = CELL;
  let chosen = [];
  let current = null;  // [row, column] under the pointer, or reached by arrow keys

  const size = (side) => [margin.left + side * labels.length + 8, margin.top + side * rows.length + 8];
  const wordsAt = ([row, column]) =>
    [...new Set([rowWords[row], words[column]].filter(Boolean))];

  /** Paint what lies in a window of the whole picture; the labels stay at its edges. */
  function paint(context, side, {x, y, width, height}) {
    const colours = coloursOf(canvas);
    const columns = inView(labels.length, side, x, width - margin.left);
    const shownRows = inView(rows.length, side, y, height - margin.top);
    const clear = (wide, high) => {
      context.fillStyle = colours.paper;
      context.fillRect(0, 0, wide, high);
    };
    context.textBaseline = 'middle';
    clear(width, height);
    context.font = FONT;
    context.textAlign = 'center';
    for (const row of shownRows) {
      for (const column of columns) {
        paintCell(context, colours, side, [row, column],
          [margin.left + column * side - x, margin.top + row * side - y]);
      }
    }
    clear(width, margin.top - 2);
    clear(margin.left - 2, height);
    context.textAlign = 'left';
    for (const at of columns) {
      paintLabel(context, colours, side, at, labels[at], words[at],
        [margin.left + (at + 0.5) * side - x, margin.top - 6], -Math.PI / 2);
    }
    context.textAlign = 'right';
    for (const at of shownRows) {
      paintLabel(context, colours, side, at, rowLabels[at], rowWords[at],
        [margin.left - 6, margin.top + (at + 0.5) * side - y], 0);
    }
    clear(margin.left - 2, margin.top - 8);
  }

  function paintCell(context, colours, side, [row, column], [left, top]) {
    const value = rows[row][column];
    const gap = side > 8 ? 1 : 0;
    context.globalAlpha = (0.9 * Number(value)) / largest;
    context.fillStyle = colours.heat;
    context.fillRect(left, top, side - gap, side - gap);
    context.globalAlpha = 1;
    context.fillStyle = colours.ink;
    if (side >= READABLE) context.fillText(signOf(value), left + side / 2, top + side / 2 + 1);
    const isCurrent = current?.[0] === row && current[1] === column;
    if (!isCurrent && !isAbout(wordsAt([row, column]), chosen)) return;
    context.strokeStyle = colours.accent;
    context.lineWidth = isCurrent ? 3 : 1.5;
    context.strokeRect(left, top, side - 1, side - 1);
  }

  /** Labels of small cells would overlap, so only some are painted. */
  function paintLabel(context, colours, side, at, text, word, [left, top], turned) {
    if (at % Math.ceil(12 / side)) return;
    const isMarked = chosen.includes(word);
    context.save();
    context.translate(left, top);
    context.rotate(turned);
    context.font = isMarked ? `bold ${FONT}` : FONT;
    context.fillStyle = isMarked ? colours.accent : colours.ink;
    context.fillText(text, 0, 0, LABEL);
    context.restore();
  }

  function repaint() {
    const ratio = devicePixelRatio;
    const [width, height] = [frame.clientWidth, frame.clientHeight];
    if (!canvas.isConnected || !width) return;
    Object.assign(canvas, {width: width * ratio, height: height * ratio});
    Object.assign(canvas.style, {width: `${width}px`, height: `${height}px`});
    const context = canvas.getContext('2d');
    context.scale(ratio, ratio);
    paint(context, cell, {x: frame.scrollLeft, y: frame.scrollTop, width, height});
  }

  function resize(scale) {
    cell = CELL * scale;
    const [width, height] = size(cell);
    Object.assign(space.style, {width: `${width}px`, height: `${height}px`});
    canvas.style.height = canvas.style.width = '0';  // the frame is as large as its content asks
    repaint();
  }

  /** Say what stands in a cell, and mark its words everywhere. */
  function choose(place) {
    current = place;
    told.textContent = place ? describe(place) : '';
    canvas.dataset.word = place ? wordsAt(place).join(' ') : '';
    canvas.dispatchEvent(new CustomEvent('words', {bubbles: true}));
    repaint();
  }

  function describe([row, column]) {
    const value = rows[row][column];
    const names = [rowLabels[row], labels[column]].filter(Boolean).join(', ');
    return `${names}: ${value === null ? 'no path' : {true: 'yes', false: 'no'}[value] ?? value}`;
  }

  canvas.addEventListener('pointermove', ({offsetX, offsetY}) => {
    const row = Math.floor((offsetY + frame.scrollTop - margin.top) / cell);
    const column = Math.floor((offsetX + frame.scrollLeft - margin.left) / cell);
    const isCell = offsetX > margin.left && offsetY > margin.top && rows[row] && column in labels;
    if (String(current) !== String(isCell ? [row, column] : null)) {
      choose(isCell ? [row, column] : null);
    }
  });
  canvas.addEventListener('pointerleave', () => choose(null));
  canvas.addEventListener('marked', ({detail}) => {
    chosen = detail;
    repaint();
  });
  frame.addEventListener('scroll', repaint);
  frame.addEventListener('keydown', (event) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const [row, column] = current ?? [0, 0];
    const place = current ? [Math.min(Math.max(row + step[0], 0), rows.length - 1),
      Math.min(Math.max(column + step[1], 0), labels.length - 1)] : [0, 0];
    frame.scrollLeft = nearest(frame.scrollLeft, place[1] * cell, frame.clientWidth - margin.left - cell);
    frame.scrollTop = nearest(frame.scrollTop, place[0] * cell, frame.clientHeight - margin.top - cell);
    choose(place);
  });
  document.addEventListener('parsebank:colours', function again() {
    if (canvas.isConnected) repaint();
    else document.removeEventListener('parsebank:colours', again);
  });

  async function png() {
    const [width, height] = size(CELL);
    const scale = Math.min(2, Math.sqrt(LARGEST_AREA / (width * height)));
    const drawn = element('canvas', {width: Math.ceil(width * scale), height: Math.ceil(height * scale)});
    const context = drawn.getContext('2d');
    context.scale(scale, scale);
    canvas.classList.add('for-paper');
    paint(context, CELL, {x: 0, y: 0, width, height});
    canvas.classList.remove('for-paper');
    return new Promise((resolve) => { drawn.toBlob(resolve, 'image/png'); });
  }
  if (labels.length > 64) zooms[name] ??= 'fit';
  const cut = total > labels.length ? `The first ${labels.length} of ${total}` : '';
  return element('figure', {'data-picture': name},
    element('figcaption', {}, cut ? element('span', {}, cut) : null,
      zooming(frame, name, zooms, {
        fit: () => Math.min((frame.clientWidth - margin.left - 8) / labels.length,
          (0.8 * innerHeight - margin.top - 10) / rows.length) / CELL,
        draw: resize,
      }),
      menu('Save', `Save the picture: ${name}`, saving(name, svg, png))), frame, told);
}

/** Which of so many rows or columns lie in a stretch of the picture. */
function inView(count, side, from, length) {
  const first = Math.max(0, Math.floor(from / side));
  const end = Math.min(count, Math.ceil((from + length) / side));
  return Array.from({length: Math.max(0, end - first)}, (_, at) => first + at);
}

/** Room for the labels beside and above the cells. */
function marginOf(labels, rowLabels) {
  const context = document.createElement('canvas').getContext('2d');
  context.font = `bold ${FONT}`;
  const room = (texts) => 12 + Math.min(LABEL,
    Math.max(0, ...texts.map((text) => context.measureText(text).width)));
  return {left: room(rowLabels), top: room(labels)};
}

/** The colours of the page, which the style sheet gives to the canvas. */
function coloursOf(canvas) {
  const {color, backgroundColor, caretColor, outlineColor} = getComputedStyle(canvas);
  return {ink: color, paper: backgroundColor, heat: caretColor, accent: outlineColor};
}

function signOf(value) {
  return value === true ? '✓' : value === false || value === null ? '' : String(value);
}

/** The least scrolling that brings a place into view, where `room` is what fits before it. */
function nearest(from, place, room) {
  return Math.min(Math.max(from, place - room), place);
}
