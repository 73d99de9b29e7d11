// A job of Hugging Face that converts a model. Its stage is the clock, its log is decoration, the target's manifest is the outcome.

import { Problem, account, api, hub, json, setting, shown, wait } from './hub.js';

// --- time and money -----------------------------------------------------------------------------------------------------
// Prices are dollars an hour, of November 2026, until the Hub says others. Rates are guesses, in bytes a second: no job of ours has
// been measured. Another program's reads from S3 had them, in 403 jobs up to 12 July 2026 (hf-s3ream).
export const machines = [
  { flavor: 'cpu-upgrade', what: '8 processors', rate: 16 * 2 ** 20, price: 0.03 },
  { flavor: 'cpu-performance', what: '32 processors', rate: 1348 * 2 ** 20, price: 1.9 },
];
const startup = 75; // seconds until a job works
// quote is what a job takes on a machine. The Hub bills every minute that has begun, up to the timeout, at which it ends the job.
export function quote(machine, { download_bytes: down, upload_bytes: up }) {
  const seconds = startup + (down + up) / machine.rate;
  const timeout = 60 * Math.max(10, Math.ceil(4 * seconds / 60)), minute = machine.price / 60;
  return { ...machine, seconds, timeout, minute, cost: Math.ceil(seconds / 60) * minute, most: timeout / 60 * minute };
}
// quotes are those of all machines that make sense, the fastest first, and of those that are as fast the cheapest.
export function quotes(needs) {
  const minutes = q => Math.ceil(q.seconds / 60);
  const all = machines.map(m => quote(m, needs)).sort((a, b) => minutes(a) - minutes(b) || a.cost - b.cost);
  return all.filter((q, i) => i === 0 || q.cost < Math.min(...all.slice(0, i).map(p => p.cost)));
}
export const span = s => s < 90 * 60 ? Math.ceil(s / 60) + ' min' : (s / 3600).toFixed(1) + ' h';
export const dollars = n => '$' + (Math.ceil(100 * n - 1e-9) / 100 || 0.01).toFixed(2);
// askPrices takes today's prices from the Hub.
export async function askPrices() {
  const all = [await json('/api/jobs/hardware', { token: '' }).catch(() => [])].flat();
  const units = { minute: 60, second: 3600, hour: 1 };
  for (const m of machines) {
    const { unitCostUSD, unitLabel } = all.find(h => h.name === m.flavor) ?? {}, price = unitCostUSD * units[unitLabel];
    if (price > 0) Object.assign(m, { price, now: true });
  }
}

// --- a job --------------------------------------------------------------------------------------------------------------
const ended = ['COMPLETED', 'CANCELED', 'ERROR', 'DELETED', 'DELETING', 'STOPPED'];
export const running = job => !ended.includes(job.status.stage);
export const address = job => `${hub()}/jobs/${account.user}/${job.id}`;
const path = id => `/api/jobs/${account.user}/${encodeURIComponent(id)}`;
// taskOf is what a job converts, by its command.
export function taskOf(job) {
  const command = job.command ?? [], [source = '', commit = ''] = (command[1] ?? '').split('@');
  return { source, commit, target: command[command.indexOf('--repo-id') + 1] ?? '' };
}
// jobAt asks the Hub for a job. Anything else is no answer.
async function jobAt(where, options) {
  const job = await json(where, options);
  if (job.id && job.status?.stage) return job;
  throw new Problem('The Hub sent something else than a job');
}
const labelsOf = ({ source, target }) => ({ 'df11-convert': source, 'df11-target': target });
// find returns the job that is converting a source into a target now.
async function find(task) {
  const labels = Object.entries(labelsOf(task));
  const query = [...labels.map(([k, v]) => ['label', `${k}=${v}`]), ['stage', 'RUNNING'], ['stage', 'SCHEDULING']];
  const jobs = await json(`/api/jobs/${account.user}?` + new URLSearchParams(query), { tries: 4 });
  return jobs.find(j => running(j) && labels.every(([k, v]) => j.labels?.[k] === v));
}
const refusals = {
  401: ['Your sign-in has ended', 'sign in again'],
  402: ['Your account has no credit for jobs', 'jobs are paid in advance: add credit, then start the job again'],
  403: ['The Hub doesn’t let you start this job', 'sign out, sign in again and agree to all three rights; an organization may forbid it'],
  404: ['The Hub knows no jobs for your account', 'use a command under “Run it yourself”'],
  429: ['The Hub has had too many questions', 'wait some minutes, then try again'],
};
const refusal = (error, title) => {
  const [known, todo] = refusals[error.status] ?? [title, 'try again, or use a command under “Run it yourself”'];
  return new Problem(known, error.why || (known === title ? error.title : ''), [todo],
    { status: error.status, link: error.status === 402 ? [hub() + '/settings/billing', 'Add credit'] : undefined });
};
// start starts a job, unless one with the same source and target runs: then it gives that one.
export async function start(task, machine, options) {
  const left = (account.ends - Date.now()) / 1000 - 60;
  if (left < 1.5 * machine.seconds) {
    throw new Problem('The job could outlive your sign-in', `It needs about ${span(machine.seconds)}.`, ['sign out and in again']);
  }
  return navigator.locks.request('df11-start', async () => { // one tab at a time
    const there = await find(task).catch(error => { throw refusal(error, 'It’s unknown whether such a job runs, so none was started'); });
    if (there) return { job: there, found: true };
    const command = ['df11-convert', `${task.source}@${task.commit}`, '--push', '--repo-id', task.target, '--work-dir', '/tmp/df11',
      '--log-format', 'json', '--json', ...options];
    const body = {
      dockerImage: setting('image'), // by digest, because a token that may spend money goes into it
      command, arguments: [], environment: {}, secrets: { HF_TOKEN: account.token }, flavor: machine.flavor,
      timeoutSeconds: Math.floor(Math.min(machine.timeout, left)),
      labels: { name: 'df11-convert', ...labelsOf(task) },
    };
    try {
      const headers = { 'Content-Type': 'application/json' };
      return { job: await jobAt(`/api/jobs/${account.user}`, { method: 'POST', headers, body: JSON.stringify(body) }) };
    } catch (error) {
      const job = error.status < 500 ? undefined : await find(task).catch(() => undefined); // the answer was lost, not the job
      if (job) return { job };
      throw refusal(error, 'The job didn’t start');
    }
  });
}

export const cancel = job => api(path(job.id) + '/cancel', { method: 'POST', tries: 3 });
const often = 12_000; // between two questions for the stage
const patience = 5; // answers that there is no such job, which a new one may get
// follow asks for the stage of a job until it has ended, whatever its log does. It calls saw with every answer, silent with every
// failure, and heard with every line of the log.
export async function follow(id, { saw, silent, heard, signal }) {
  const done = new AbortController();
  listen(id, heard, AbortSignal.any([signal, done.signal]));
  try {
    for (let missing = 0; ; await wait(often)) {
      signal.throwIfAborted();
      const job = await jobAt(path(id)).catch(error => error);
      signal.throwIfAborted();
      if (job instanceof Problem) {
        missing = job.status === 404 ? missing + 1 : 0;
        if (job.status === 401) throw refusal(job);
        if (missing === patience) throw new Problem('The Hub knows no such job of yours', '', [], { status: 404 });
        silent(job);
        continue;
      }
      saw(job);
      if (!running(job)) return job;
    }
  } finally {
    done.abort();
  }
}
// listen reads the log, again and again from its beginning, until the job has ended. Nothing depends on it.
async function listen(id, heard, signal) {
  for (let known = 0, pause = 2; !signal.aborted; pause = Math.min(2 * pause, 30)) {
    let n = 0;
    try {
      const answer = await api(path(id) + '/logs', { headers: { Accept: 'text/event-stream' }, signal });
      for await (const line of events(answer.body.pipeThrough(new TextDecoderStream()).getReader())) {
        if (signal.aborted) return;
        if (++n <= known) continue;
        [known, pause] = [n, 2];
        heard(line);
      }
    } catch { /* opened again below */ }
    await wait(1000 * pause);
  }
}
// events reads the lines out of a stream of server-sent events. What is none it leaves out; a silent stream it leaves.
async function* events(reader) {
  for (let rest = ''; ;) {
    const { done, value } = await Promise.race([reader.read(), wait(120_000).then(() => ({ done: true }))]);
    if (done) return reader.cancel().catch(() => {});
    const all = (rest + value).split('\n');
    rest = all.pop();
    for (const line of all) {
      if (!line.startsWith('data: {')) continue;
      try { yield String(JSON.parse(line.slice(6)).data ?? '').trimEnd(); } catch { /* no line */ }
    }
  }
}
// linesOf reads the objects of a log of --log-format json.
export const linesOf = log => log.flatMap(line => {
  try { return line.startsWith('{') ? [JSON.parse(line)] : []; } catch { return []; }
});
const resume = 'start it again: it goes on with what was published';
// advice is what the program says to do in the last line of its log. Its command that continues is the button here.
const advice = failure => [failure?.hints ?? []].flat().filter(hint => !/resume with: /.test(hint)).map(shown);
// outcome says how a job has ended: what the target's manifest says counts, not the job.
export async function outcome(job, log) {
  const { source, commit, target } = taskOf(job), { stage, message } = job.status;
  const manifest = await json(`/${target}/resolve/main/df11-manifest.json`, { tries: 5 }).catch(error => error);
  if (manifest.source && manifest.source.repo === source && manifest.source.commit === commit) {
    const weights = manifest.verification?.find(v => v.method === 'cpu')?.n_weights;
    const n = weights ? `${weights.toLocaleString('en')} weights were` : 'Its weights were, by earlier runs,'; // an update that kept all
    const why = `${n} compared with the original, all 16 bits: 0 differ. So says its manifest.`;
    return { good: true, title: 'Published', target, why, todo: [] };
  }
  const list = linesOf(log), failure = list.findLast(m => m.level === 'ERROR');
  const error = list.findLast(m => m.schema_version)?.error?.message;
  if (stage === 'CANCELED') return { title: 'Canceled', why: '', todo: [resume] };
  if (stage !== 'COMPLETED') {
    const hints = advice(failure), todo = hints.length ? [...hints, 'then ' + resume] : [resume];
    return { title: 'The job has failed', why: shown(error ?? failure?.msg ?? message), todo };
  }
  if (manifest.status === 404) {
    return { title: 'The job has ended without a result', why: `${target} has no manifest.`, todo: ['look at the job’s log', resume] };
  }
  const why = manifest.source ? `${target} was made from something else.` : manifest.title ?? '';
  return { title: 'The job has ended, and its result is unknown', why, todo: [`look at ${target}`] };
}
