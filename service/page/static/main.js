// The shell: tabs by the address's hash, the API key, the colours.

import {apiKey, errorBox, element, setApiKey} from './api.js';
import * as parse from './parse.js';
import * as store from './store.js';
import * as jobs from './jobs.js';
import * as models from './models.js';

const TABS = {parse, store, jobs, models};
const THEME = 'parsebank-theme';

const main = document.getElementById('main');
const tabs = document.getElementById('tabs');
const keyForm = document.getElementById('key-form');
const keyToggle = document.getElementById('key-toggle');
const keyField = document.getElementById('key');
const keyStatus = document.getElementById('key-status');
const theme = document.getElementById('theme');

/** Tab and parameters of a hash such as `#parse?lang=en`. */
function place() {
  const [name, ...query] = location.hash.slice(1).split('?');
  return [name in TABS ? name : 'parse', new URLSearchParams(query.join('?'))];
}

/**
 * Show the tab of the address in a new section. The section of the tab before leaves the document,
 * by which that tab knows that it is over (`root.isConnected`).
 */
async function show() {
  const [name, parameters] = place();
  const root = element('section', {id: `tab-${name}`});
  main.replaceChildren(root);
  for (const tab of tabs.children) {
    if (tab.hash === `#${name}`) {
      tab.setAttribute('aria-current', 'page');
      document.title = `${tab.textContent} - Parsebank`;
    } else tab.removeAttribute('aria-current');
  }
  try {
    await TABS[name].show(root, parameters);
  } catch (error) {
    root.append(errorBox(error));
  }
}

function showKey() {
  keyToggle.textContent = apiKey() ? 'API key: in use' : 'API key';
  keyStatus.textContent = apiKey() ? 'A key is in use.' : 'No key is in use.';
}

function openKeyForm(isOpen) {
  keyForm.hidden = !isOpen;
  keyToggle.setAttribute('aria-expanded', String(isOpen));
  if (isOpen) keyField.focus();
}

/** Use another key, or none; the form closes, unless the service refuses the key. */
function changeKey(key) {
  setApiKey(key);
  keyField.value = '';
  showKey();
  openKeyForm(false);
  keyToggle.focus();
  show();
}

function applyTheme() {
  const chosen = localStorage.getItem(THEME) ?? '';
  theme.value = chosen;
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
  tellColours();
}

/** What is painted, not styled, has to be painted again. */
function tellColours() {
  document.dispatchEvent(new CustomEvent('parsebank:colours'));
}

keyForm.addEventListener('submit', (event) => {
  event.preventDefault();
  changeKey(keyField.value.trim());
});
document.getElementById('key-forget').addEventListener('click', () => changeKey(''));
keyToggle.addEventListener('click', () => openKeyForm(keyForm.hidden));
document.addEventListener('parsebank:unauthorized', () => openKeyForm(true));
for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) {
  matchMedia(query).addEventListener('change', tellColours);
}
theme.addEventListener('change', () => {
  localStorage.setItem(THEME, theme.value);
  applyTheme();
});
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();  // the hash says the tab
  main.focus();
});
window.addEventListener('hashchange', async () => {
  await show();
  main.focus({preventScroll: true});
});

applyTheme();
showKey();
await show();
