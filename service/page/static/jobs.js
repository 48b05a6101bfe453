// The tab Jobs: backfills with live progress, their reports, cancelling and trying again.

import {element, errorBox, get, link, post, remove, request} from './api.js';
import {action, count, facts, onLeave, refusal, table} from './tables.js';

const PAGE = 20;
const LOOK_MS = 3000;
const ACTIVE = ['queued', 'running'];
const WAITS = 'waits for a worker, and starts once one is free.';

export async function show(root, parameters) {
  const id = parameters.get('job');
  if (id) await showJob(root, id);
  else await showJobs(root, parameters);
}

/** All jobs, newest first; asked for again while one of them is active. */
async function showJobs(root, parameters) {
  const chosen = {state: parameters.get('state') ?? '', before: parameters.get('before') ?? ''};
  const list = element('div');
  root.append(element('h1', {}, 'Jobs'), chooser(chosen), list);
  while (root.isConnected) {
    const query = new URLSearchParams({limit: PAGE});
    for (const [name, value] of Object.entries(chosen)) if (value) query.set(name, value);
    let found;
    try {
      found = await get(`jobs?${query}`);
    } catch (error) {
      list.replaceChildren(errorBox(error));
      return;
    }
    if (!list.contains(document.activeElement)) list.replaceChildren(...listed(found, chosen));
    if (!found.some(isActive)) return;
    await pause(LOOK_MS);
  }
}

function chooser(chosen) {
  const states = ['', 'queued', 'running', 'done', 'failed', 'cancelled'];
  const select = element('select', {id: 'job-state', onchange: () => {
    location.hash = link('jobs', select.value ? {state: select.value} : {});
  }}, states.map((state) => element('option', {value: state, selected: state === chosen.state},
    state || 'all')));
  return element('div', {class: 'row'}, element('label', {for: 'job-state'}, 'State'), select);
}

function listed(jobs, chosen) {
  if (!jobs.length) {
    return [element('p', {}, chosen.state ? `No job is ${chosen.state}.` : 'There is no job yet.'),
      element('p', {}, 'A backfill makes one: ', element('code', {},
        'parsebank backfill NAME --path FILE --split dev --lang en --url ADDRESS'))];
  }
  const shown = table('Backfills, newest first',
    ['Job', 'State', 'Progress', 'Left', 'Examples', 'Stored', 'Dropped', 'Created'],
    jobs.map((job) => [
      element('a', {href: link('jobs', {job: job.id})}, `${job.dataset} ${job.split}/${job.lang}`),
      stateOf(job), progress(job), timeLeft(job), job.counts.examples,
      job.counts.stored + job.counts.already_stored, dropped(job), time(job.created),
    ]));
  const older = jobs.length === PAGE
    ? element('p', {}, element('a', {href: link('jobs',
      {...(chosen.state ? {state: chosen.state} : {}), before: jobs.at(-1).id})}, 'Older jobs'))
    : '';
  const waiting = jobs.some(isQueued)
    ? element('p', {class: 'hint'}, `A job that is queued ${WAITS}`) : '';
  return [shown, waiting, older];
}

/** One job, followed by the service's events until it has ended. */
async function showJob(root, id) {
  const info = await get('info');
  const status = element('p', {role: 'status', class: 'status'});
  const box = element('div');
  const problem = element('div');
  root.append(element('p', {}, element('a', {href: link('jobs')}, 'All jobs')),
    element('h1', {}, 'Job'), status, element('div', {class: 'row'}), problem, box);
  const refused = refusal(info, 'admin', 'Cancelling and trying again');
  const buttons = root.querySelector('.row');
  const fail = (error) => problem.replaceChildren(errorBox(error));
  let last = '';

  function draw(job) {
    root.querySelector('h1').textContent = `Job: ${job.dataset} ${job.split}/${job.lang}`;
    box.replaceChildren(...report(job));
    if (job.state === last) return;
    last = job.state;
    status.textContent = `The job is ${job.state}.${isQueued(job) ? ` It ${WAITS}` : ''}`;
    buttons.replaceChildren(...actions(job));
  }

  function actions(job) {
    if (refused && (isActive(job) || job.state === 'failed')) return [refused];
    if (isActive(job)) {
      return [action('Cancel', async () => {
        if (!window.confirm('Cancel this job? What it has stored stays.')) return;
        draw(await remove(`jobs/${id}`));
      }, fail)];
    }
    if (job.state !== 'failed') return [];
    return [action('Run the failed shards again', async () => {
      draw(await post(`jobs/${id}/retry`));
      follow(root, id, draw).catch(fail);
    }, fail)];
  }
  draw(await get(`jobs/${id}`));
  if (ACTIVE.includes(last)) follow(root, id, draw).catch(fail);
}

/** Read server-sent events; a stream that breaks off is asked for again. */
async function follow(root, id, draw) {
  const leaving = new AbortController();
  onLeave(() => leaving.abort());
  while (root.isConnected) {
    try {
      const answer = await request('GET', `jobs/${id}/events`,
        {headers: {Accept: 'text/event-stream'}, signal: leaving.signal});
      if (await readEvents(answer, draw)) return;
    } catch (error) {
      if (error.name === 'AbortError') return;
      if (error.status) throw error;
    }
    await pause(LOOK_MS);
  }
}

/** Draw the job of each event; whether the last one was read. */
async function readEvents(answer, draw) {
  if (answer.status === 204) return true;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = '';
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return false;
    const blocks = (waiting + value).split('\n\n');
    waiting = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s)));
      if (fields.data) draw(JSON.parse(fields.data));
      if (fields.event === 'end') return true;
    }
  }
}

function report(job) {
  const {counts} = job;
  const rows = [
    ['Examples and rejections that came', counts.examples],
    ['Stored', counts.stored],
    ['Stored before', counts.already_stored],
    ...Object.entries(counts.dropped).map(([reason, number]) => [`Dropped: ${reason}`, number]),
    ['Texts parsed', counts.parses.done],
    ['Texts with a parse already', counts.parses.reused],
  ];
  return [
    element('p', {}, progress(job), ' ', timeLeft(job)),
    job.error ? errorBox({name: job.error.error_type, message: job.error.message}) : '',
    ...job.warnings.map((warning) => element('p', {class: 'note'}, warning)),
    facts([
      ['Parser', job.parser], ['Tokenizer', job.tokenizer], ['Mode', job.mode],
      ['Created', time(job.created)], ['Started', time(job.started)],
      ['Finished', time(job.finished)], ['Id', element('code', {}, job.id)],
    ]),
    table('Report', ['What', 'Number'], rows),
    job.failed_shards.length ? table('Failed shards', ['Shard', 'Tries', 'Error', 'Message'],
      job.failed_shards.map((shard) =>
        [String(shard.number), shard.tries, shard.error_type, shard.message])) : '',
    job.counts.stored + job.counts.already_stored ? element('p', {}, element('a', {
      href: link('store', {dataset: job.dataset, tokenizer: job.tokenizer_fingerprint,
        split: job.split, lang: job.lang}),
    }, 'Look at its examples')) : '',
  ];
}

function progress(job) {
  const {total, done, failed} = job.shards;
  const text = `${count(done)} of ${count(total)} shards${failed ? `, ${failed} failed` : ''}`;
  return [element('progress', {max: total || 1, value: done + failed, 'aria-label': text}), ' ', text];
}

/** Time left, by the rate so far; empty where there is none yet. */
function timeLeft(job) {
  const {total, done, failed} = job.shards;
  if (job.state !== 'running' || !job.started || !done) return '';
  const seconds = (Date.now() - new Date(job.started)) / 1000;
  return `about ${duration((seconds / (done + failed)) * (total - done - failed))} left`;
}

function duration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

function stateOf(job) {
  const kind = {failed: 'bad', done: 'good'}[job.state] ?? '';
  return element('span', {class: kind}, job.state);
}

function dropped(job) {
  return Object.values(job.counts.dropped).reduce((sum, number) => sum + number, 0);
}

function isQueued(job) {
  return job.state === 'queued';
}

function isActive(job) {
  return ACTIVE.includes(job.state);
}

function time(iso) {
  return iso ? element('time', {datetime: iso}, new Date(iso).toLocaleString()) : '';
}

function pause(milliseconds) {
  return new Promise((resolve) => { setTimeout(resolve, milliseconds); });
}
