// The tab Store: datasets, their examples with trees and features, and SQL.

import {element, errorBox, get, link, request} from './api.js';
import {showResult} from './result.js';
import {showSql} from './sql.js';
import {count, facts, refusal, table} from './tables.js';
import {tagged} from './ud.js';

const ADHOC = 'adhoc';
const PAGE = 20;

export async function show(root, parameters) {
  const info = await get('info');
  if (parameters.has('example')) await showExample(root, parameters);
  else if (parameters.has('dataset')) await showExamples(root, parameters, info);
  else await showDatasets(root, parameters, info);
}

async function showDatasets(root, parameters, info) {
  const list = element('div');
  root.append(element('h1', {}, 'Store'), list);
  showSql(root, parameters, info);
  try {
    list.append(...datasets(await get('datasets'), info));
  } catch (error) {
    list.append(errorBox(error));
  }
}

function datasets(found, info) {
  if (!found.length) {
    return [element('p', {}, 'The store has no dataset yet. A parse with a tokenizer makes one, ',
      'and so does a backfill: ', element('code', {},
        'parsebank backfill NAME --path FILE --split dev --lang en --url ADDRESS'))];
  }
  const rows = found.flatMap((data) => data.parts.map((part) => [
    nameOf(data, part, info), part.split, part.lang, part.rows, drops(data, part),
    data.tokenizer.name, data.fields.join(', '), data.labels.join(', '), data.version,
  ]));
  const isHidden = refusal(info, 'admin', `Looking at ${ADHOC}, the texts that were sent to parse,`);
  return [table('Datasets, by split and language',
    ['Dataset', 'Split', 'Language', 'Examples', 'Dropped', 'Tokenizer', 'Fields', 'Labels',
      'Version'], rows),
  isHidden && found.some(({name}) => name === ADHOC) ? isHidden : ''];
}

function nameOf(data, part, info) {
  if (!part.rows || (data.name === ADHOC && info.role !== 'admin')) return data.name;
  return element('a', {href: link('store', {
    dataset: data.name, tokenizer: data.tokenizer.fingerprint, split: part.split, lang: part.lang,
  })}, data.name);
}

/** Drops by reason; each reason leads to the query that names the examples. */
function drops(data, part) {
  const reasons = Object.entries(part.dropped);
  if (!reasons.length) return 0;
  const total = reasons.reduce((sum, [, number]) => sum + number, 0);
  return element('details', {}, element('summary', {}, count(total)),
    element('ul', {}, reasons.map(([reason, number]) => element('li', {},
      element('a', {href: link('store', {sql: dropQuery(data, part, reason)})}, reason),
      `: ${count(number)}`))));
}

function dropQuery(data, part, reason) {
  const wanted = {dataset: data.name, split: part.split, lang: part.lang, reason};
  const conditions = Object.entries(wanted)
    .map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'`);
  return `select distinct example_id, message\nfrom drops\nwhere ${conditions.join(' and ')}`;
}

function chosenPart(parameters) {
  const names = ['dataset', 'tokenizer', 'split', 'lang', 'parser'];
  return Object.fromEntries(names.filter((name) => parameters.get(name))
    .map((name) => [name, parameters.get(name)]));
}

function examplesOf(part, start, limit) {
  const {dataset, ...chosen} = part;
  const query = new URLSearchParams({...chosen, start, limit});
  return get(`datasets/${encodeURIComponent(dataset)}/examples?${query}`);
}

async function showExamples(root, parameters) {
  const part = chosenPart(parameters);
  const start = Number(parameters.get('start') ?? 0);
  root.append(back('All datasets', {}), element('h1', {}, `Examples of ${part.dataset}`));
  const page = await examplesOf(part, start, PAGE).catch((error) => offerParsers(root, part, error));
  if (!page) return;
  const end = start + page.examples.length;
  root.append(
    facts([['Split', page.split], ['Language', part.lang], ['Tokenizer', page.tokenizer],
      ['Version', String(page.version)]]),
    element('nav', {class: 'row', 'aria-label': 'Pages of examples'},
      step('Previous', part, Math.max(0, start - PAGE), start > 0),
      element('span', {role: 'status'}, page.total
        ? `${count(Math.min(start + 1, end))} to ${count(end)} of ${count(page.total)}`
        : 'no example'),
      step('Next', part, end, end < page.total)),
    table('Examples, in the order of the split',
      ['Id', ...page.fields, ...Object.keys(page.examples[0]?.labels ?? {}), 'Pieces', 'Parser'],
      page.examples.map((example) => [
        element('a', {href: link('store', {...part, example: example.number})}, example.example_id),
        ...page.fields.map((_, at) =>
          element('span', {lang: example.lang}, example.texts[at] ?? '')),
        ...Object.values(example.labels).map(labelOf), example.pieces.join(' + '), example.parser,
      ])));
}

/** Where several parsers parsed a split, one has to be chosen; any other error goes on. */
function offerParsers(root, part, error) {
  if (!error.detail?.parsers) throw error;
  root.append(element('p', {}, error.message), element('ul', {}, error.detail.parsers.map((parser) =>
    element('li', {}, element('a', {href: link('store', {...part, parser})},
      `Those of the parser ${parser}`)))));
}

function back(text, parameters) {
  return element('p', {}, element('a', {href: link('store', parameters)}, text));
}

function step(text, part, start, isPossible) {
  return isPossible ? element('a', {href: link('store', {...part, start})}, text)
    : element('span', {class: 'muted'}, text);
}

function labelOf(value) {
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

async function showExample(root, parameters) {
  const part = chosenPart(parameters);
  const number = Number(parameters.get('example'));
  const start = number - (number % PAGE);
  root.append(back(`Examples of ${part.dataset}`, {...part, start}), element('h1', {}, 'Example'));
  const page = await examplesOf(part, number, 1);
  const [example] = page.examples;
  if (!example) {
    root.append(element('p', {}, `The split has ${count(page.total)} examples.`));
    return;
  }
  root.querySelector('h1').textContent = `Example ${example.example_id}`;
  const status = element('p', {role: 'status', class: 'status'});
  const box = element('div');
  const features = element('div');
  root.append(
    element('nav', {class: 'row', 'aria-label': 'Neighbours'},
      other('Previous', part, number - 1, number > 0),
      other('Next', part, number + 1, number + 1 < page.total)),
    facts([...page.fields.map((name, at) => [name, example.texts[at]]),
      ...Object.entries(example.labels).map(([name, value]) => [name, labelOf(value)]),
      ['parser', example.parser], ['pieces', example.pieces.join(' + ')]]),
    chooser(page, example, parameters), status, box, features);
  await Promise.all([
    showTree(box, page, example, fieldOf(parameters, page), (text) => { status.textContent = text; }),
    showFeatures(features, page, example),
  ]);
}

function other(text, part, example, isPossible) {
  return isPossible ? element('a', {href: link('store', {...part, example})}, text)
    : element('span', {class: 'muted'}, text);
}

function fieldOf(parameters, page) {
  return Math.min(Number(parameters.get('field') ?? 0), page.fields.length - 1);
}

/** Which text of the example is drawn, where it has several. */
function chooser(page, example, parameters) {
  if (example.texts.length < 2) return '';
  const at = fieldOf(parameters, page);
  return element('nav', {class: 'row', 'aria-label': 'Text that is drawn'}, 'Draw:',
    example.texts.map((_, field) => element('a', {
      href: link('store', {...Object.fromEntries(parameters), field}),
      'aria-current': field === at ? 'true' : null,
    }, page.fields[field] ?? `text ${field + 1}`)));
}

async function showTree(box, page, example, field, tell) {
  const path = `parses/${example.parse_keys[field]}?format=conllu`;
  try {
    const conllu = await (await request('GET', path, {headers: {Accept: '*/*'}})).text();
    const asked = {kind: 'raw', lang: example.lang, tokenizer: page.tokenizer, policy: 'attach',
      layout: 'arcs', sentence: '1', matrices: '', words: ''};
    await showResult(box, {
      documents: [{name: example.parser, conllu}], asked, tell,
      remember: (changed) => Object.assign(asked, changed),
      answer: () => get(`parses/${example.parse_keys[field]}`),
    });
  } catch (error) {
    box.append(errorBox(error));
  }
}

/** The sequence that a trainer gets for the whole example. */
async function showFeatures(box, page, example) {
  const query = new URLSearchParams({tokenizer: page.tokenizer});
  try {
    const answer = await get(`features/${example.parse_keys.join(',')}?${query}`);
    box.append(element('h2', {}, 'What a trainer gets'), sequence(answer.examples[0]));
  } catch (error) {
    box.append(errorBox(error));
  }
}

function sequence(example) {
  if (example.error) return errorBox({name: example.error.error_type, ...example.error});
  const columns = Object.entries(example).filter(([, values]) => Array.isArray(values)
    && values.length === example.input_ids.length && !Array.isArray(values[0]));
  return table('Arrays by position, special tokens included',
    ['Position', ...columns.map(([name]) => name)],
    example.input_ids.map((_, at) =>
      [String(at), ...columns.map(([name, values]) => tagged(name, values[at] ?? ''))]));
}
