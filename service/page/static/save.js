// Texts and pictures to the clipboard and to files, and the menus that offer it.

import {element} from './api.js';

const SCALE = 2;  // of PNG, for screens and papers with many dots to an inch
const LARGEST = 16000;  // of either side of a canvas, in pixels

/**
 * A menu of buttons, and what became of the last one that was pressed.
 * @param {string} text what it is called
 * @param {string} name what the menu is for, in full
 * @param {Array} actions pairs of a button's text and a function, which gets `tell(text)`
 */
export function menu(text, name, actions) {
  const told = element('span', {role: 'status', class: 'hint'});
  const tell = (text) => { told.textContent = text; };
  const summary = element('summary', {'aria-label': name}, text);
  const run = async (action) => {
    made.open = false;
    summary.focus();
    try {
      await action(tell);
    } catch (error) {
      tell(`${error.type ?? error.name}: ${error.message}`);
    }
  };
  const made = element('details', {class: 'menu'}, summary,
    element('div', {class: 'items'}, actions.map(([what, action]) =>
      element('button', {type: 'button', onclick: () => run(action)}, what))));
  made.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !made.open) return;
    event.stopPropagation();
    made.open = false;
    summary.focus();
  });
  return element('div', {class: 'save'}, told, made);
}

document.addEventListener('click', ({target}) => {
  for (const open of document.querySelectorAll('details.menu[open]')) {
    if (!open.contains(target)) open.open = false;
  }
});

/** Copy a text; where the browser refuses, say why and download it. */
export async function copyText(text, name, tell) {
  try {
    await navigator.clipboard.writeText(text);
    tell(`Copied ${name}.`);
  } catch (error) {
    const reason = navigator.clipboard ? error.message
      : 'browsers allow it only over HTTPS and from localhost or 127.0.0.1.';
    download(text, name, 'text/plain', (saved) => tell(`Not copied: ${reason} ${saved}`));
  }
}

/** @param {string|Blob} content */
export function download(content, name, type, tell) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([content], {type}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  tell(`Saved ${name}.`);
}

/**
 * A picture of the service as an element, without its style sheet: the page has the colours in its
 * own, and its policy admits no other.
 */
export function svgElement(svg) {
  const plain = svg.replace(/<style>[^<]*<\/style>/, '');
  return new DOMParser().parseFromString(plain, 'image/svg+xml').documentElement;
}

/** A picture as PNG, in the light colours, which are right for paper. */
export async function svgAsPng(svg) {
  const drawn = svgElement(svg);
  const width = Number(drawn.getAttribute('width'));
  const height = Number(drawn.getAttribute('height'));
  const scale = Math.min(SCALE, LARGEST / width, LARGEST / height);
  const image = new Image();
  const plain = new XMLSerializer().serializeToString(drawn);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(plain)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil(height * scale);
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
}
