// The tab Models: the parsers that the service has, what each gives, and how to get more.

import {element, errorBox, get, link, post} from './api.js';
import {action, facts, refusal, table} from './tables.js';

const GIVEN = {lemma: 'lemmas', xpos: 'xpos', feats: 'feats'};

export async function show(root) {
  const [info, models] = await Promise.all([get('info'), get('models')]);
  const status = element('div', {role: 'status', class: 'status'});
  const list = element('div');
  const refused = refusal(info, 'admin', 'Loading and unloading');
  root.append(element('h1', {}, 'Models'), status, list, refused ?? '', more());

  function draw(found) {
    list.replaceChildren(table('Parsers',
      ['Name', 'Languages', 'Gives', 'Now', 'Size', 'Version', 'Licence'],
      found.map((model) => [
        nameOf(model), languages(model), columns(model), state(model), megabytes(model.size_bytes),
        [model.treebank, model.version].filter(Boolean).join(' '), model.licence ?? 'not stated',
      ])), ...found.map(details));
  }

  function state(model) {
    if (model.problem) return element('span', {class: 'bad'}, 'cannot be used');
    if (!model.loaded) return ['not loaded', change(model, 'load', 'Load')];
    const memory = model.memory_mb === null ? '' : `, ${Math.round(model.memory_mb)} MB`;
    const workers = model.workers === 1 ? '1 process' : `${model.workers} processes`;
    return [`loaded: ${workers}${memory}`, change(model, 'unload', 'Unload')];
  }

  function change(model, verb, text) {
    if (refused) return null;
    const made = action(text, async () => {
      status.textContent = `${text}ing ${model.name} ...`;
      await post(`models/${model.name}/${verb}`);
      draw(await get('models'));
      status.textContent = `${model.name} is ${verb}ed.`;
    }, (error) => status.replaceChildren(errorBox(error)));
    made.setAttribute('aria-label', `${text} ${model.name}`);
    return [' ', made];
  }
  draw(models);
}

function nameOf(model) {
  return element('a', {href: link('parse', {parser: model.name, lang: model.langs[0] ?? ''})},
    model.name);
}

function languages(model) {
  if (!model.langs.length) return 'not stated';
  const first = model.default_for.length
    ? `, answers for ${model.default_for.join(', ')}` : '';
  return `${model.langs.join(', ')}${first}`;
}

/** What a model gives beside words, UPOS and trees. */
function columns(model) {
  if (!model.columns) return 'trees, UPOS; else not stated';
  const given = Object.keys(GIVEN).filter((name) => model.columns.includes(name));
  const missing = Object.keys(GIVEN).filter((name) => !model.columns.includes(name));
  const has = ['trees', 'UPOS', ...given.map((name) => GIVEN[name])].join(', ');
  return missing.length ? `${has}; no ${missing.map((name) => GIVEN[name]).join(', ')}` : has;
}

function details(model) {
  return element('details', {},
    element('summary', {}, `About ${model.name}`),
    model.problem ? element('p', {class: 'bad'}, model.problem) : '',
    facts([
      ['Backend', model.backend],
      ['Treebank', model.treebank],
      ['Fingerprint', model.fingerprint && element('code', {}, model.fingerprint)],
      ['sha256', model.sha256 && element('code', {}, model.sha256)],
    ]));
}

function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

function more() {
  const lines = [
    ['parsebank models list --remote --lang fr', 'what can be fetched for a language'],
    ['parsebank models pull french-gsd', 'fetch UDPipe\'s model of a treebank'],
    ['parsebank models pull stanza/fr', 'fetch Stanza\'s default package of a language'],
    ['parsebank models train --help', 'train a model from a treebank'],
    ['parsebank models add --help', 'serve a parser that was trained here'],
  ];
  return element('section', {'aria-labelledby': 'more-models'},
    element('h2', {id: 'more-models'}, 'How to get more'),
    element('p', {}, 'On the machine of the service; it finds new models without a restart.'),
    element('dl', {class: 'facts commands'}, lines.map(([command, meaning]) => element('div', {},
      element('dt', {}, element('code', {}, command)), element('dd', {}, meaning)))));
}
