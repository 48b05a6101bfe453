// The tab Parse: a form, and the parse of what was typed.

import {ApiError, element, errorBox, get, link, post, request} from './api.js';
import {comment, linesOf, sentencesOf} from './conllu.js';
import {showResult} from './result.js';

const EXAMPLE = "Don't parse the same text twice: store its trees.";

const KINDS = {
  raw: 'Text',
  sentence: 'Text of one sentence',
  pretokenized: 'Words, a sentence on each line',
  retokenize: 'Tokens whose words the parser finds',
  tokens_mwt: 'Tokens of which only multiword tokens are split',
  conllu: 'CoNLL-U',
};
const OF_TEXT = ['raw', 'sentence'];
const LOADING_MS = 300_000;  // after which a parser that is still being loaded counts as an error
const PAUSE_MS = 1000;

/**
 * What a view shows; the defaults are left out of its link.
 *
 * `kind` is a mode of `POST /parse`, or `conllu`; `key` is that of a stored parse, instead of a
 * text; `compare` is a second parser; `store` is `no` for a text that is not to be kept; `matrices`
 * are those that are open; `words` are ids that are marked at first.
 */
const DEFAULTS = {
  kind: 'raw', text: '', key: '', lang: '', parser: '', compare: '', tokenizer: '',
  policy: 'attach', layout: 'arcs', sentence: '1', store: '', matrices: '', words: '',
};

export async function show(root, parameters) {
  const [info, models] = await Promise.all([get('info'), get('models')]);
  const asked = {...DEFAULTS, ...Object.fromEntries(parameters)};
  asked.tokenizer = parameters.get('tokenizer') ?? usualTokenizer(asked, info, models);
  const address = () => {
    const usual = {...DEFAULTS, tokenizer: usualTokenizer(asked, info, models)};
    const told = Object.keys(usual).filter((name) => asked[name] !== usual[name]);
    return link('parse', Object.fromEntries(told.map((name) => [name, asked[name]])));
  };
  const isAsked = Boolean(asked.text || asked.key);

  const status = element('p', {role: 'status', class: 'status'});
  const result = element('div', {class: 'result'});
  const form = parseForm(asked, info, models, () => {
    asked.key = '';
    Object.assign(asked, {sentence: '1', words: ''});
    history.pushState(null, '', address());
    run();
  });
  root.append(element('h1', {class: 'visually-hidden'}, 'Parse'), form, status, result);

  let running = new AbortController();
  async function run() {
    running.abort();
    running = new AbortController();
    const {signal} = running;
    const tell = (message) => { status.textContent = message; };
    const remember = (changed) => {
      Object.assign(asked, changed);
      history.replaceState(null, '', address());
    };
    tell('Parsing ...');
    result.replaceChildren();
    try {
      const documents = await analyses(asked, tell, signal);
      if (asked.key) form.elements.text.value = textOf(documents[0].conllu);
      for (const failure of documents.flatMap(({failed}) => failed)) result.append(errorBox(failure));
      if (!linesOf(documents[0].conllu).length) {
        tell('');
        return;
      }
      const box = element('div');
      result.append(box);
      await showResult(box, {documents, asked, remember, tell, signal,
        answer: () => answer(asked), onTree: () => bringIntoView(status, box)});
    } catch (error) {
      if (error.name === 'AbortError') return;
      tell('');
      result.append(errorBox(error));
    }
  }
  if (isAsked) await run();
  else {
    form.elements.text.value = EXAMPLE;
    result.append(element('p', {class: 'hint'}, 'Press Parse: the tree of each sentence, its words, '
      + 'its wordpieces and the matrices over them are shown here, and can be saved.'));
  }
}

/** Where the trees do not fit below the form, scroll to what is said of them. */
function bringIntoView(status, box) {
  const {bottom} = box.querySelector('.trees').getBoundingClientRect();
  if (bottom > innerHeight) status.scrollIntoView();
}

/**
 * The service's tokenizer; but a bundled one is for the language that its name ends in, and the
 * words of another language would be unknown to it.
 */
function usualTokenizer({lang, parser}, info, models) {
  if (!info.tokenizers.includes(info.tokenizer)) return info.tokenizer;
  const spoken = lang || models.find(({name}) => name === parser)?.langs[0] || info.lang;
  return info.tokenizers.find((name) => name.endsWith(`-${spoken}`)) ?? '';
}

/** The form; its fields write into `asked` when it is sent. */
function parseForm(asked, info, models, send) {
  const mayParse = info.role !== 'read';
  const kinds = [...(mayParse ? info.modes : []), 'conllu'].map((kind) => [kind, KINDS[kind] ?? kind]);
  const fields = {
    text: element('textarea', {rows: 2, spellcheck: 'false', required: true}),
    kind: choice(kinds),
    lang: choice([['', `as the parser (default: ${info.lang})`], ...languages(models)]),
    parser: choice([]),
    compare: choice([]),
    tokenizer: element('input', {list: 'tokenizers', autocomplete: 'off', spellcheck: 'false',
      size: 26, placeholder: 'none: over words'}),
    policy: choice(info.policies.map((name) => name.split('.')[0]).map((name) => [name, name])),
  };
  for (const [name, field] of Object.entries(fields)) {
    field.name = name;
    field.id = `parse-${name}`;
  }
  const store = element('input', {type: 'checkbox', id: 'parse-store', checked: !asked.store});
  const form = element('form', {class: 'parse', 'aria-label': 'What to parse'},
    mayParse ? null : element('p', {class: 'note'},
      'Your key may read: it draws CoNLL-U and shows stored parses. To parse takes another key.'),
    labelled('What to parse', fields.text),
    element('div', {class: 'fields'},
      labelled('Input', fields.kind), labelled('Language', fields.lang),
      labelled('Parser', fields.parser)),
    element('datalist', {id: 'tokenizers'},
      info.tokenizers.map((name) => element('option', {value: name}))),
    element('div', {class: 'row'},
      element('button', {type: 'submit', class: 'primary'}, 'Parse'),
      element('label', {class: 'inline'}, store, ' Keep the parse in the store'),
      element('details', {class: 'options', open: isOptional(asked, info, models)},
        element('summary', {}, 'Options'),
        element('div', {class: 'fields'},
          labelled('Compare with', fields.compare), labelled('Tokenizer', fields.tokenizer),
          labelled('Subword policy', fields.policy)))));

  const offer = () => offerParsers(fields, info, models);
  const adapt = () => {
    const isGiven = fields.kind.value === 'conllu';
    for (const name of ['parser', 'compare']) fields[name].disabled = isGiven;
    store.disabled = isGiven;
    fields.text.dir = isGiven ? 'ltr' : 'auto';  // columns stay in their order
    fields.text.classList.toggle('code', isGiven);
  };
  let usual = usualTokenizer(asked, info, models);
  const followLanguage = () => {
    const next = usualTokenizer(
      {lang: fields.lang.value, parser: fields.parser.value}, info, models);
    if (fields.tokenizer.value === usual) fields.tokenizer.value = next;
    usual = next;
  };
  for (const [name, field] of Object.entries(fields)) {
    if (name === 'lang') {
      const codes = [...field.options].map(({value}) => value);
      if (!codes.includes(asked.lang)) field.append(element('option', {value: asked.lang}, asked.lang));
    }
    field.value = asked[name];
    if (field.selectedIndex === -1) field.selectedIndex = 0;
    if (name === 'lang' || name === 'parser') offer();
  }
  adapt();
  for (const field of [fields.lang, fields.parser]) {
    field.addEventListener('change', () => {
      offer();
      followLanguage();
    });
  }
  fields.kind.addEventListener('change', adapt);
  fields.text.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    for (const [name, field] of Object.entries(fields)) asked[name] = field.value;
    asked.store = store.checked ? '' : 'no';
    send();
  });
  return form;
}

/** Whether a link asks for something that stands under Options. */
function isOptional(asked, info, models) {
  return Boolean(asked.compare) || asked.policy !== DEFAULTS.policy
    || asked.tokenizer !== usualTokenizer(asked, info, models);
}

function labelled(text, field) {
  return element('div', {}, element('label', {for: field.id}, text), field);
}

function choice(options) {
  return element('select', {}, options.map(([value, text]) => element('option', {value}, text)));
}

/** Codes and names of the languages that some parser knows. */
function languages(models) {
  const names = new Intl.DisplayNames(['en'], {type: 'language'});
  const codes = [...new Set(models.flatMap((model) => model.langs))];
  return codes.map((code) => [code, `${names.of(code)} (${code})`])
    .sort((one, other) => one[1].localeCompare(other[1]));
}

/**
 * Offer the parsers of the chosen language, and those of which nobody knows the language; to compare
 * with, all but the chosen one.
 */
function offerParsers(fields, info, models) {
  const lang = fields.lang.value;
  const fitting = models.filter((one) => !lang || !one.langs.length || one.langs.includes(lang));
  const standing = lang ? fitting.find((one) => one.default_for.includes(lang))?.name : info.parser;
  const options = (offered) => offered.map((one) => element('option',
    {value: one.name, disabled: Boolean(one.problem), title: one.problem},
    one.problem ? `${one.name} (cannot be used)` : one.name));
  const offer = (field, first, offered) => {
    const chosen = field.value;
    field.replaceChildren(element('option', {value: ''}, first), ...options(offered));
    if (offered.some((one) => one.name === chosen)) field.value = chosen;
  };
  offer(fields.parser, standing ? `default (${standing})` : 'default', fitting);
  const chosen = fields.parser.value || standing;
  offer(fields.compare, 'nothing', fitting.filter((one) => one.name !== chosen));
}

/** The analyses that a view shows, as CoNLL-U: that of the parser, and that of a second one. */
async function analyses(asked, tell, signal) {
  if (asked.kind === 'conllu') {
    return [{name: 'CoNLL-U', conllu: `${asked.text.trim()}\n`, failed: [], isGiven: true}];
  }
  const parsers = asked.compare && !asked.key ? [asked.parser, asked.compare] : [asked.parser];
  return Promise.all(parsers.map((parser) => analysis({...asked, parser}, tell, signal)));
}

async function analysis(asked, tell, signal) {
  const answer = asked.key
    ? await request('GET', `parses/${encodeURIComponent(asked.key)}?format=conllu`, {signal})
    : await afterLoading(() => request('POST', 'parse?format=conllu',
      {body: bodyOf(asked), signal}), tell);
  const conllu = await answer.text();
  const failed = conllu.split('\n').filter((line) => line.startsWith('# error = ')).map(failure);
  return {name: comment(conllu, 'parser').split(' ')[0], conllu, failed};
}

/** Ask again as long as the service answers that it is still loading the parser. */
async function afterLoading(ask, tell) {
  const end = Date.now() + LOADING_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!error.detail?.loading || Date.now() > end) throw error;
      tell(`${error.detail.loading} is being loaded; the page asks again by itself ...`);
      await new Promise((resolve) => { setTimeout(resolve, PAUSE_MS); });
    }
  }
}

/** An error as CoNLL-U has it: `# error = 1 sentence_too_long: the sentence has ...`. */
function failure(line) {
  const [, type, message] = /^# error = \d+ (\w+): (.*)$/.exec(line) ?? [null, 'error', line];
  return new ApiError(200, type, message);
}

/** The body of `POST /parse`. */
function bodyOf(asked) {
  const body = {mode: asked.kind};
  if (OF_TEXT.includes(asked.kind)) body.text = asked.text;
  else {
    const lines = asked.text.split('\n').map((line) => line.trim()).filter(Boolean);
    body.tokens = lines.map((line) => line.split(/\s+/));
  }
  if (asked.lang) body.lang = asked.lang;
  if (asked.parser) body.parser = asked.parser;
  if (asked.store) body.store = false;
  return body;
}

/** The answer of the service as JSON, with everything that the page shows. */
async function answer(asked) {
  if (asked.key) return get(`parses/${encodeURIComponent(asked.key)}`);
  const matrices = ['distance', 'depth', 'ancestor'];
  const body = {...bodyOf(asked), matrices};
  if (asked.tokenizer) Object.assign(body, {tokenizer: asked.tokenizer, policy: asked.policy});
  return post('parse', body);
}

function textOf(conllu) {
  return sentencesOf(conllu).map(({text}) => text).join(' ');
}
