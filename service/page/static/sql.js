// SQL over the store: samples, a query, its rows.

import {element, errorBox, link, post} from './api.js';
import {count, refusal, table} from './tables.js';

const SAMPLES = {
  'Pattern: objects before their verb': 'pattern {\n  V [upos=VERB];\n  V -[obj]-> O;\n  O << V\n}',
  'Pattern: verbs without a subject, by lemma': 'pattern { V [upos=VERB] }\n'
    + 'without { V -[1=nsubj]-> S }\n'
    + 'select V.lemma, count(*) as n\nfrom matches\ngroup by all\norder by n desc',
  'Words by UPOS': 'select upos, count(*) as words\nfrom words\ngroup by upos\norder by words desc',
  'Relations by frequency':
    'select lang, deprel, count(*) as n\nfrom words\ngroup by all\norder by n desc',
  'Depth of trees by language': 'select lang, count(*) as sentences,\n'
    + '  round(avg(list_max(depth_vector(head))), 2) as depth\nfrom sentences\ngroup by lang',
  'Heads before or after their dependents': 'select deprel, count(*) as n,\n'
    + '  round(avg((head > id)::int), 2) as head_follows\nfrom words\nwhere head > 0\n'
    + 'group by deprel\norder by n desc',
  'Longest dependencies': 'select form, deprel, abs(head - id) as length, key\nfrom words\n'
    + 'where head > 0\norder by length desc\nlimit 20',
  'Pieces of each text': 'select dataset, example_id, segment, length, text\nfrom segments\n'
    + 'order by length desc\nlimit 20',
  'Examples by dataset and parser': 'select dataset, split, lang, parser, count(*) as examples\n'
    + 'from examples\ngroup by all',
  'Drops by reason': 'select dataset, split, lang, reason, count(*) as n\nfrom drops\ngroup by all',
  'Columns of a view': 'describe words',
};
const LIMITS = [20, 100, 1000];

/** The section SQL; `sql` in the address is the query to begin with. */
export function showSql(root, parameters, info) {
  const given = parameters.get('sql') ?? '';
  const query = element('textarea', {id: 'sql-query', rows: 6, spellcheck: 'false', class: 'code'});
  query.value = given || SAMPLES['Words by UPOS'];
  const sample = element('select', {id: 'sql-sample', onchange: () => {
    query.value = SAMPLES[sample.value] ?? query.value;
    tellCommand();
  }}, element('option', {value: ''}, 'choose one'),
  Object.keys(SAMPLES).map((name) => element('option', {value: name}, name)));
  const limit = element('select', {id: 'sql-limit'},
    LIMITS.map((rows) => element('option', {value: rows, selected: rows === 100}, rows)));
  const run = element('button', {type: 'submit', class: 'primary'}, 'Run');
  const status = element('p', {role: 'status', class: 'status'});
  const result = element('div');
  const command = element('code', {class: 'command'});
  const refused = refusal(info, 'admin', 'SQL reads all that is stored, and so');
  run.disabled = Boolean(refused);

  function tellCommand() {
    const quoted = query.value.replaceAll('\n', ' ').replaceAll("'", "'\\''");
    command.textContent = `parsebank store sql '${quoted}' --store DIR`;
  }
  async function send(event) {
    event.preventDefault();
    if (run.disabled) return;
    run.disabled = true;
    status.textContent = 'Running ...';
    result.replaceChildren();
    try {
      const answer = await post('sql', {query: query.value, limit: Number(limit.value)});
      const rows = answer.rows.length === 1 ? '1 row' : `${count(answer.rows.length)} rows`;
      status.textContent = `${rows}${answer.truncated ? '; there are more' : ''}.`;
      result.replaceChildren(rowsOf(answer));
    } catch (error) {
      status.textContent = '';
      result.replaceChildren(errorBox(error));
    } finally {
      run.disabled = false;
    }
  }
  query.addEventListener('input', tellCommand);
  query.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) query.form.requestSubmit();
  });
  tellCommand();
  root.append(element('section', {'aria-labelledby': 'sql'},
    element('h2', {id: 'sql'}, 'Search by pattern and SQL'),
    element('p', {class: 'hint'}, 'A graph pattern in Grew\'s syntax, or one SELECT in DuckDB\'s SQL '
      + 'over the views parses, sentences, words, examples, segments, drops and fingerprints. '
      + 'Nothing can be written.'),
    refused ?? '',
    element('form', {'aria-label': 'SQL', onsubmit: send},
      element('div', {class: 'fields'},
        labelled('Sample queries', sample), labelled('Rows, at most', limit)),
      labelled('Query', query),
      element('p', {class: 'row'}, run, element('span', {class: 'hint'}, 'or Ctrl+Enter'))),
    element('p', {class: 'hint'}, 'Without limits of time and rows: ', command),
    status, result));
  if (given) query.focus();
}

function labelled(text, field) {
  return element('div', {}, element('label', {for: field.id}, text), field);
}

/** The rows; the key of a parse leads to its tree, in which the words of a pattern are marked. */
function rowsOf(answer) {
  const names = answer.columns.map(({name}) => name);
  const sentence = names.indexOf('sentence');
  return table('Rows', names, answer.rows.map((row) => row.map((value, at) => {
    if (names[at] !== 'key' || typeof value !== 'string') return shown(value);
    const words = row.filter((_, other) => names.includes(`${names[other]}_form`)).join(' ');
    const place = Number.isInteger(row[sentence]) ? {sentence: row[sentence] + 1, words} : {};
    return element('a', {href: link('parse', {key: value, ...place})}, value);
  })));
}

function shown(value) {
  if (value === null) return element('span', {class: 'muted'}, 'null');
  return typeof value === 'object' ? JSON.stringify(value) : typeof value === 'boolean'
    ? String(value) : value;
}
