// What is on the page, and what its buttons do. Everything from outside is text, never markup.

import * as hub from './hub.js';
import * as jobs from './job.js';
import * as planner from './planner.js';
import { Problem, account, shown } from './hub.js';
const $ = id => document.getElementById(id);
const put = (e, props, children) => { e.append(...children); return Object.assign(e, props); };
const el = (tag, props = {}, ...children) => put(document.createElement(tag), props, children);
const fill = (id, ...children) => $(id).replaceChildren(...children.filter(child => child != null && child !== ''));
const name = text => el('bdi', {}, shown(text)); // of a repo or a tensor: it turns nothing around it
const link = (href, ...children) => el('a', { href, rel: 'noopener', target: '_blank' }, ...children);
const repo = id => link(`${hub.hub()}/${id}`, name(id));
const button = (text, onclick, className = '') => el('button', { type: 'button', onclick, className }, text);
const list = rows => el('ul', {}, ...rows.map(row => el('li', {}, row)));
const checkOf = (id, text) => el('a', { href: '?check=' + encodeURIComponent(id) }, text);
const announce = text => { $('state').textContent = text; };
// done announces an outcome and moves to its heading, which goes to the top if the main button would not fit the screen.
function done(heading, text) {
  announce(text);
  $(heading).focus({ preventScroll: true });
  const last = $(heading).parentNode.querySelector('.main') ?? $(heading);
  if (last.getBoundingClientRect().bottom > innerHeight) $(heading).scrollIntoView();
}
const program = (hub.setting('version') === 'dev' ? '' : 'uvx ') + 'df11-convert'; // registries have releases alone
const title = text => { document.title = text ? text + ' · df11-convert' : 'df11-convert: BF16 models as DFloat11'; };
// bytes is written as the program writes it.
function bytes(n) {
  let unit = 0;
  for (; n >= 999.5 && unit < 4; unit++) n /= 1000;
  return (n >= 100 || n === Math.trunc(n) ? n.toFixed(0) : n.toPrecision(3)) + ' ' + ['B', 'kB', 'MB', 'GB', 'TB'][unit];
}

// --- messages -----------------------------------------------------------------------------------------------------------
// warn shows a problem until it is closed, or the same topic has another outcome. No other action hides it.
function warn(topic, problem, ...actions) {
  hush(topic);
  const { title: head, why, todo, link: more } = Problem.of(problem, 'That didn’t work', 'reload the page and try again');
  const heading = el('h2', { tabIndex: -1, id: topic + '-title' }, head), close = button('×', () => hush(topic), 'close');
  close.ariaLabel = 'Close: ' + head;
  const next = [...(more ? [link(...more)] : []), ...actions];
  $('messages').append(el('section', { className: 'box', id: 'about-' + topic }, heading, why ? el('p', {}, why) : '',
    list(todo.filter(Boolean)), next.length ? el('p', { className: 'next' }, ...next) : '', close));
  if (topic === 'lost') announce(`${head}. ${why}`);
  else done(topic + '-title', `${head}. ${why}`);
}
const hush = topic => $('about-' + topic)?.remove();
const signInButton = () => hub.canSignIn() && !account.user ? [button('Sign in with Hugging Face', enter, 'main')] : [];

// --- ask ----------------------------------------------------------------------------------------------------------------
let asking = new AbortController(); // of the plan or check that is under way
let now; // the plan that is shown
// move writes what is shown into the address, also into that of the Space around a frame.
function move(changes, how = 'replaceState') {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(changes)) value ? query.set(key, value) : query.delete(key);
  const text = query.toString();
  history[how](null, '', text ? '?' + text : location.pathname);
  query.delete('__theme');
  if (hub.framed()) window.parent.postMessage({ queryString: query.toString(), hash: '' }, hub.hub());
}
// ask plans or checks what was named. A plan that this session knows costs nothing unless it is wanted fresh.
async function ask(mode, text, { fresh = true, f32 = false, tries = 0 } = {}) {
  asking.abort();
  const { signal } = asking = new AbortController(), stop = () => { asking.abort(); busy('stopped'); };
  for (const id of ['plan', 'check', 'examples']) $(id).hidden = true;
  hush('answer');
  now = undefined;
  document.querySelector(`[name=mode][value=${mode}]`).click();
  $('model').value = text;
  $('go').focus({ preventScroll: true });
  try {
    const id = await planner.address(text, signal);
    if (signal.aborted) return;
    $('model').value = id;
    if (fresh) move({ model: '', check: '', f32: f32 && 'exact', [mode]: id }, 'pushState');
    if (!following) title(id); // else the title counts a job
    const again = tries => ask(mode, id, { f32, tries });
    await (mode === 'check' ? check(id, signal, stop, { tries, again }) : plan(id, signal, stop, { fresh, f32, tries, again }));
  } catch (error) {
    if (signal.aborted) return;
    const retry = error.retry ? [button('Try again', () => ask(mode, text, { f32 }), 'main')] : [];
    warn('answer', error, ...retry);
  }
  if (!signal.aborted) busy('');
}
// busy says what is under way, and how much was read for it; '' is nothing. It ends a wait that is counted down.
function busy(text, stop) {
  counting = clearInterval(counting);
  progress(text, stop);
}
function progress(text, stop) {
  $('progress').firstElementChild.textContent = text;
  $('stop').hidden = !stop;
  $('stop').onclick = stop;
}
let counting; // the timer of a wait that is counted down
// countdown calls show with the seconds that are left, now and every second, and over when none are. It returns its timer.
function countdown(seconds, show, over) {
  const until = Date.now() + 1000 * seconds;
  const tick = () => {
    const left = Math.ceil((until - Date.now()) / 1000);
    if (left > 0) return show(left);
    clearInterval(timer);
    over();
  };
  const timer = setInterval(tick, 1000);
  tick();
  return timer;
}
// reading returns what shows how much was read, or for how many seconds the program waits for whom.
const reading = (what, stop) => (read, wait) => {
  const now = () => busy(`${what}: ${bytes(read)} …`, stop);
  if (!wait) return counting || now();
  busy('');
  const who = wait.host === new URL(hub.hub()).host ? 'the Hub' : shown(wait.host);
  announce(`waiting for ${who}`);
  counting = countdown(wait.seconds, left => progress(`waiting for ${who}, ${left} s left: ${shown(wait.why)}`, stop), now);
};

planner.planner.addEventListener('change', ({ state, got, all }) => {
  if (state !== 'loading') busy('');
  else busy(got ? `loading the planner: ${bytes(got)}${all ? ' of ' + bytes(all) : ''} …` : 'loading the planner …');
});
async function plan(id, signal, stop, { fresh, f32, ...more }) {
  const known = !fresh && planner.recall(id, f32);
  if (known) return arrive(known);
  busy('reading headers …', stop);
  announce('reading headers');
  const first = await planner.plan(id, { exact: f32, signal, heard: reading('reading headers', stop) });
  if (signal.aborted) return;
  if (!first.groups) return refuse(first, id, signal, more);
  planner.remember(first);
  arrive(first);
  if (!first.known && !navigator.connection?.saveData) await refine(first, signal, more);
}
const arrive = p => { show(p); done('plan-title', `${p.source}: ${bytes(p.before)} become about ${bytes(p.after)}`); };
// refine makes a plan exact to about 0.1% from samples of the weights, which the visitor may stop.
async function refine(first, signal, more) {
  const part = new AbortController(), stop = () => part.abort();
  signal.addEventListener('abort', stop);
  const heard = reading('reading samples of the weights for a closer estimate', stop);
  heard(0);
  const closer = await planner.plan(first.name, { exact: first.exact, samples: true, signal: part.signal, heard }).catch(() => first);
  if (signal.aborted) return;
  if (closer.error?.kind === 'f32_not_exact') return refuse(closer, first.name, signal, more);
  if (!closer.groups) return;
  planner.remember(closer);
  show(closer);
}
// steps word what the program says about the next step: what to do, and the buttons for it.
const steps = {
  not_found: () => ['check its spelling; this page sees public models, and of the private ones those that it made for you', signInButton()],
  not_df11: id => ['it isn’t a result of DF11: plan it, to see what it would become', [button('Plan it', () => ask('model', id), 'main')]],
  unauthorized: () => ['sign in again', signInButton()],
  sign_in: id => ['sign in, so that the Hub knows whether you’ve accepted its terms', [...signInButton(), pageOf(id)]],
  accept_terms: (id, again) => ['open its page on the Hub, accept the terms there, come back, and try again', [pageOf(id), again]],
  check_instead: id => ['it’s a result already: check it', [button('Check it', () => ask('check', id), 'main')]],
  exact_f32: id => ['if its F32 values are all exact in BF16, you can still convert it', [button('Plan it as BF16', () => ask('model', id, { f32: true }), 'main')]],
  rate_limited: (id, again) => ['the Hub limits what it answers to one place within five minutes: wait, then try again', [again]],
  retry: (id, again) => ['the Hub is busy or out of reach: wait a little, then try again', [again]],
};
// pageOf links to a model's own page, which has its terms.
const pageOf = id => link(`${hub.hub()}/${/^(?:hf:\/\/)?([^/]+\/[^/@]+)/.exec(id)?.[1]}`, 'Open its page');
const titles = {
  not_convertible: 'This model can’t be converted', f32_not_exact: 'This model can’t be converted', not_found: 'There is no such model, or it is private',
  gated: 'You must accept its terms first', usage: 'This can’t be planned here', unauthorized: 'The Hub no longer takes your sign-in',
  rate_limited: 'The Hub has had too many questions', hub: 'The Hub doesn’t answer as it should',
};
// advice is the program's own hint, the best there is. A flag, a variable, or a command in it is for the visitor's own machine; the page
// has another way to name a file.
const advice = ({ hint = '' }, id) => hint.split('\n').filter(Boolean).map(text =>
  /(^|\s)--file\b/.test(text) ? `name one of its files: hf://${id}/FILE.safetensors`
    : /(^|\s)--\w|\bHF_|df11-convert /.test(text) ? 'on your own machine: ' + text : text);
const pause = 60, mostPauses = 5; // seconds, and their number, before the page asks again by itself: the Hub's limits are for 5 minutes
// refuse shows why there is no plan or check. If the Hub limits questions, it asks again after a while, unless the visitor does something.
function refuse({ error }, id, signal, { tries, again }, kind = 'This can’t be planned') {
  if (error.kind === 'unauthorized') leave();
  const retry = button('Try again', () => again(0), 'main');
  const step = steps[error.kind] ?? steps[error.next], [todo, actions = []] = step?.(id, retry) ?? [];
  const head = error.next === 'retry' && !navigator.onLine ? 'You’re offline' : titles[error.kind] ?? kind;
  // What was asked of which address is for a log.
  const why = shown(error.message).replace(/^source: /, '').replace(/ \((GET|HEAD) [^()]*\)$/, '');
  const own = todo ? [todo] : advice(error, id);
  if (error.next === 'sign_in' && !hub.canSignIn()) own.push(...advice(error, id));
  warn('answer', new Problem(head, why, own), ...actions);
  if (error.kind !== 'rate_limited' || tries >= mostPauses) return;
  const left = el('p', {});
  retry.parentNode.before(left);
  const timer = countdown(pause, s => { left.textContent = `This page asks again in ${s} s.`; }, () => {
    const open = left.isConnected;
    left.remove();
    if (open && document.activeElement !== $('model')) again(tries + 1);
  });
  signal.addEventListener('abort', () => clearInterval(timer));
}

// --- plan ---------------------------------------------------------------------------------------------------------------
// picture is the program's drawing of both sizes: markup of numbers and of its own words.
const picture = p => [...new DOMParser().parseFromString(p.picture ?? '', 'text/html').body.childNodes];
const gpu = g => g.n > 1 ? `${g.n} × ${g.gib} GB` : `one ${g.gib} GB`;
// fits says in one sentence which GPU it takes.
function fits(gpus) {
  const [df11, bf16] = ['df11_fits', 'bf16_fits'].map(form => gpus.find(g => g[form]));
  if (!df11) return 'Weights alone: DF11 fits none of the usual GPUs.';
  if (!bf16) return `Weights alone: DF11 fits ${gpu(df11)} GPU; BF16 fits none of the usual sizes.`;
  return 'Weights alone: ' + (df11 === bf16 ? `both fit ${gpu(df11)} GPU.` : `DF11 fits ${gpu(df11)} GPU; BF16 needs ${gpu(bf16)}.`);
}

function show(p) {
  now = p;
  const saved = 1 - p.after / Math.max(1, p.before);
  fill('plan-title', repo(p.source));
  fill('there', ...p.published.slice(0, 3).flatMap((id, i) => [i ? ', ' : 'There already: ', repo(id), ' (', checkOf(id, 'check'), ')']));
  const gain = saved > 0 ? `${Math.round(100 * saved)}% smaller, bit for bit the same` : 'nothing to gain';
  fill('sizes', `${bytes(p.before)} → ${p.known ? '' : '≈ '}${bytes(p.after)} `, el('small', {}, gain));
  fill('picture', ...picture(p));
  $('fits').textContent = fits(p.gpus);
  offer(p);
  const guess = 'estimated from ' + (p.sampled ? bytes(p.sampled) + ' of the weights' : 'the headers: the usual ratio of trained weights');
  const facts = [p.commit && 'commit ' + p.commit.slice(0, 12), p.layout, p.access, p.known ? 'exact' : guess];
  $('plan-meta').textContent = facts.filter(Boolean).join(' · ');
  const remarks = [['Take care', p.warnings], ['Differs from the official route', p.differences], ['Equal, so stored once', p.aliases]];
  fill('remarks', ...remarks.filter(([, rows]) => rows.length).flatMap(([head, rows]) => [el('h3', {}, head), list(rows.map(name))]));
  fill('plain', plain(p));
  const loads = { yes: 'loads it', no: 'doesn’t load it', untested: 'isn’t tested with it' };
  const readers = p.readers.map(r => el('span', {}, `${r.name} ${r.version} ${loads[r.loads]}`, r.why ? ': ' : '', name(r.why)));
  fill('readers', list(readers));
  const holds = yes => yes ? 'fits' : 'doesn’t fit';
  fill('gpus', list(p.gpus.map(g => `${gpu(g).replace('one ', '')}: DF11 ${holds(g.df11_fits)}, BF16 ${holds(g.bf16_fits)}`)));
  $('plan').hidden = false;
}
// plain lists what stays in BF16, and why.
function plain({ groups }) {
  const rows = groups.map(g => el('span', {}, `${bytes(g.size)} in ${g.n} ${g.n === 1 ? 'tensor ' : 'tensors, such as '}`,
    el('code', {}, name(g.such)), ': ' + shown(g.why)));
  return list(rows.length ? rows : ['nothing']);
}

// --- check --------------------------------------------------------------------------------------------------------------
// verdicts are those that are not good, of the model, the pair with its original, and the other files.
const verdicts = {
  damaged: ['bad', 'Damaged'], different_weights: ['bad', 'Differs from its original'],
  other_original: ['bad', 'Made from another original'], different: ['open', 'Other files differ'],
};

async function check(id, signal, stop, more) {
  busy('reading headers …', stop);
  const doc = await planner.check(id, signal, reading('checking', stop));
  if (signal.aborted) return;
  if (doc.level === undefined) return refuse(doc, id, signal, more, 'This can’t be checked');
  const subjects = ['model', 'pair', 'files'].map(of => doc.verdicts[of]), found = subjects.find(s => verdicts[s.verdict]);
  const [look, head] = verdicts[found?.verdict] ?? (doc.ok ? ['good', 'No fault found'] : ['bad', 'Not checked to the end']);
  $('check').className = look;
  fill('verdict', el('span', { className: 'verdict' }, head), ': ', name(id));
  const fault = shown(found?.why ?? doc.error?.message).replace(/\b([0-9a-f]{10})[0-9a-f]{54}\b/g, '$1…');
  $('check-why').textContent = !found && doc.ok ? `Its structure and published hashes fit ${shown(doc.against)}.` : fault;
  const rows = { finding: doc.error?.message, model: doc.model, commit: doc.commit, original: doc.against, 'its commit': doc.against_commit,
    modules: doc.units, 'copied tensors': doc.tensors, warnings: (doc.warnings ?? []).join('; '), 'other files': doc.beside.join(', ') };
  const known = Object.entries(rows).filter(([, v]) => v != null && v !== '');
  fill('checked', list(known.map(([k, v]) => el('span', {}, k + ': ', name(v)))));
  fill('check-next', 'Checked in this browser; no weight was compared. Every weight is compared by ',
    el('code', {}, `${program} verify ${id} --level proof`));
  $('check').hidden = false;
  done('verdict', `${head}: ${id}`);
}

// --- sign-in ------------------------------------------------------------------------------------------------------------
const enter = () => hub.signIn().catch(error => warn('sign-in', error, ...signInButton()));

function showAccount() {
  $('who').textContent = account.user ?? '';
  $('sign-out').hidden = !account.user;
  $('sign-in').hidden = !hub.canSignIn() || !!account.user;
  if (now) offer(now);
}

function leave() {
  const link = following && [jobs.address(following.job), 'The job on the Hub'];
  unfollow();
  hub.signOut();
  showAccount();
  if (!link) return;
  warn('job', new Problem('Your job goes on, and goes on costing', '', ['sign in again to see it here'], { link }), ...signInButton());
}

// --- convert ------------------------------------------------------------------------------------------------------------
// unoffered says why a plan's conversion is not offered, if it's not.
function unoffered(p) {
  if (p.after >= 0.99 * p.before) return 'Nothing would be gained, so there is nothing to convert.';
  return hub.setting('image') && hub.canSignIn() ? '' : 'This copy of the page starts no jobs. The command under Details does the same.';
}
// terms says what the visitor pays, what is a guess, and what a job does.
const terms = (p, q) => [
  `${account.user ? 'You' : 'You sign in first, and you'} pay Hugging Face for every minute that has begun, at most ${jobs.dollars(q.most)} ` +
    `(${q.now ? 'prices of today' : 'prices of November 2026'}).`,
  `The time is a guess: no job of ours was measured. After ${jobs.span(q.timeout)} the job stops by itself, and can be continued.`,
  'A job of Hugging Face converts the model, compares every weight with the original, and publishes the result under your name. ' +
    'You can close the page meanwhile.',
  p.closed && 'Make the result public only if the license of this model allows that.',
].filter(Boolean);
// choices are the visitor's for one model. A reload and a sign-in keep them.
let choices = JSON.parse(hub.keep.get('df11-choices') ?? '{}');
const options = p => [choices.hidden ? '--private' : p.closed && '--public', p.exact && '--exact-f32'].filter(Boolean);
// offer prepares the button for a plan.
function offer(p) {
  const why = unoffered(p), all = jobs.quotes(p.needs);
  Object.assign($('no-job'), { textContent: why, hidden: !why });
  $('job').hidden = !!why || !!following;
  if (choices.of !== p.source) choices = { of: p.source, target: p.source.split('/').at(-1) + '-DF11', hidden: p.closed };
  fill('machine', ...all.map(q => el('option', { value: q.flavor }, `${q.what}: about ${jobs.span(q.seconds)}, ${jobs.dollars(q.cost)}`)));
  const machine = () => all.find(q => q.flavor === choices.machine) ?? all[0];
  $('machine').value = machine().flavor;
  $('target').value = choices.target;
  $('private').checked = choices.hidden;
  $('owner').textContent = (account.user ?? 'you') + ' /';
  price(p, machine());
  $('job').oninput = () => {
    choices = { of: p.source, machine: $('machine').value, target: $('target').value, hidden: $('private').checked };
    hub.keep.set('df11-choices', JSON.stringify(choices));
    price(p, machine());
  };
  $('job').onsubmit = event => {
    event.preventDefault();
    if (!account.user) return enter();
    begin({ source: p.source, commit: p.commit, target: `${account.user}/${choices.target}` }, machine(), options(p));
  };
}
// price says what a job of these choices takes, and which command does the same elsewhere.
function price(p, q) {
  $('start').textContent = `Convert it: about ${jobs.span(q.seconds)}, at most ${jobs.dollars(q.most)}`;
  fill('terms', ...terms(p, q).map(text => el('li', {}, text)));
  const from = p.name.includes('@') ? `${p.source}@${p.commit}` : p.source;
  $('command').textContent = [program, from, ...options(p), '--push --repo-id', `${account.user ?? 'YOU'}/${choices.target}`].join(' ');
}

let following; // job, and what ends following it
function unfollow() {
  following?.end.abort();
  following = undefined;
  $('run').hidden = true;
}

async function begin(task, machine, options) {
  hush('job');
  $('start').disabled = true;
  announce('asking the Hub for a machine');
  try {
    const { job, found } = await jobs.start(task, machine, options);
    if (found) warn('job', new Problem('This job runs already', 'It was started earlier, or in another tab. Nothing new was started.'));
    follow(job.id, job);
  } catch (error) {
    lost(error);
  }
  $('start').disabled = false;
}
// lost says why there is no job to follow. A sign-in that has ended is none.
function lost(error) {
  if (error.status === 401) hub.signOut();
  showAccount();
  warn('job', error, ...(error.status === 401 ? signInButton() : []));
}

const stages = ['waiting for a machine', 'reading', 'converting', 'publishing', 'done'];
function step(n) {
  if (n < following.step) return;
  following.step = n;
  const current = i => i === n ? { ariaCurrent: 'step' } : {};
  fill('steps', ...stages.map((text, i) => el('li', { className: i < n || n === 4 ? 'past' : '', ...current(i) }, text)));
}
// present makes ready what shows a job.
function present(id) {
  $('job').hidden = true;
  $('run').className = $('phase').textContent = $('clock').textContent = '';
  fill('run-title', 'Your job');
  fill('run-why', 'You can close this page: the job goes on, and this address shows it again.');
  fill('run-links', link(jobs.address({ id }), 'The job on the Hub'));
  for (const part of ['run', 'going', 'steps', 'cancel']) $(part).hidden = false;
  $('bar').removeAttribute('value');
  $('cancel').disabled = false;
  $('cancel').onclick = () => {
    $('cancel').disabled = true;
    jobs.cancel({ id }).catch(error => { $('phase').textContent = `not canceled: ${error.title}`; $('cancel').disabled = false; });
  };
  $('run-title').focus();
  step(0);
}
// follow shows a job until it has ended. The address names it, so that a reload or another tab finds it again.
async function follow(id, job) {
  unfollow();
  const end = new AbortController(), log = [];
  const mine = following = { job: job ?? { id }, end, step: -1 };
  move({ job: id });
  present(id);
  const began = Date.now();
  const clock = when => {
    const { createdAt, flavor } = mine.job, m = jobs.machines.find(x => x.flavor === flavor);
    const s = Math.max(0, (Date.now() - (Date.parse(createdAt) || began)) / 1000), time = [s / 60, s % 60].map(Math.floor);
    const cost = m ? `, at most ${jobs.dollars(Math.ceil(s / 60) * m.price / 60)}` : '';
    $('clock').textContent = `${time[0]}:${String(time[1]).padStart(2, '0')} elapsed${cost}${when}`;
  };
  clock(' so far');
  const tick = setInterval(clock, 1000, ' so far');
  try {
    const last = await jobs.follow(id, {
      signal: end.signal,
      saw: found => {
        mine.job = found;
        if (mine.step === 0 && found.status.message) $('phase').textContent = 'the Hub says: ' + shown(found.status.message);
        const { target } = jobs.taskOf(found);
        if (target) fill('run-title', 'Your job: ', name(target));
        hush('lost');
        if (found.status.stage === 'RUNNING') step(1);
      },
      silent: error => warn('lost', new Problem('No news of your job', `${error.title}. It goes on; this page keeps asking.`)),
      heard: line => mine === following && heard(line, log),
    });
    clearInterval(tick);
    clock('');
    await settle(last, log, mine);
  } catch (error) {
    if (end.signal.aborted) return;
    unfollow();
    lost(error);
    if (error.status === 404) move({ job: '' });
  } finally {
    clearInterval(tick);
    hush('lost');
  }
}
// heard shows a line of the log, as far as it is what the program writes.
function heard(line, log) {
  log.push(line);
  const [m] = jobs.linesOf([line]);
  if (m?.msg !== 'progress' || !(m.percent >= 0)) return;
  step(m.phase === 'convert' ? m.percent > 0 ? 2 : 1 : 3);
  $('bar').value = m.percent;
  title(`${m.percent}% ` + jobs.taskOf(following.job).target);
  const left = m.seconds_left > 0 ? `, about ${jobs.span(m.seconds_left)} left` : '';
  $('phase').textContent = shown(`${m.percent}%, ${m.files} of ${m.files_total} files` + left);
}
// settle shows how a job has ended.
async function settle(job, log, mine) {
  $('going').hidden = $('cancel').hidden = true;
  const o = await jobs.outcome(job, log);
  if (mine !== following) return;
  const { target } = jobs.taskOf(job);
  if (o.good) step(4);
  else $('steps').hidden = true;
  following = undefined;
  move({ job: '' });
  $('run').className = o.good ? 'good' : job.status.stage === 'COMPLETED' || job.status.stage === 'CANCELED' ? 'open' : 'bad';
  fill('run-title', el('span', { className: 'verdict' }, o.title), ...(target ? [': ', o.good ? repo(target) : name(target)] : []));
  fill('run-why', o.why);
  const next = o.good ? [checkOf(target, 'Check it'), ' · ', link(`${hub.hub()}/${target}`, 'How to use it'), ' · '] : [list(o.todo)];
  fill('run-links', ...next, link(jobs.address(job), 'The job on the Hub'));
  done('run-title', o.title);
  title(o.title + ' ' + target);
  if (now) offer(now);
}

// --- start --------------------------------------------------------------------------------------------------------------
$('unready').remove();
document.documentElement.dataset.theme = new URLSearchParams(location.search).get('__theme') ?? ''; // of the Hub around a frame
$('version').textContent = `Version ${hub.setting('version')}.`;
const mode = () => new FormData($('ask')).get('mode');
$('ask').onsubmit = event => { event.preventDefault(); ask(mode(), $('model').value); };
$('ask').onchange = () => { $('go').textContent = mode() === 'check' ? 'Check' : 'Plan'; };
$('model').onfocus = () => { planner.load().catch(() => {}); }; // while the visitor types
let typed;
$('model').oninput = () => {
  clearTimeout(typed);
  typed = setTimeout(async () => {
    const text = $('model').value.trim();
    if (text.length > 2 && !text.includes('://')) fill('ids', ...(await hub.suggest(text)).map(id => el('option', { value: id })));
  }, 250);
};
$('sign-in').onclick = enter;
$('sign-out').onclick = leave;
window.onpopstate = () => fromAddress();
// fromAddress shows what the address names. What this session knows costs nothing.
function fromAddress(focus) {
  const query = new URLSearchParams(location.search), hash = new URLSearchParams(location.hash.slice(1));
  const text = query.get('model') || query.get('repo') || hash.get('model');
  if (query.get('check')) return ask('check', query.get('check'), { fresh: false });
  if (text) return ask('model', text, { fresh: false, f32: query.get('f32') === 'exact' }).then(() => focus && now && $('start').focus());
  for (const id of ['plan', 'check']) $(id).hidden = true;
  title('');
  return examples();
}
// examples shows plans that were made when the page was built.
async function examples() {
  const plans = await fetch(new URL('examples.json', import.meta.url)).then(answer => answer.json()).catch(() => []);
  if (now || !plans.length) return;
  fill('examples', ...plans.map(p => el('a', { href: '?model=' + encodeURIComponent(p.source) },
    el('h2', {}, name(p.source.split('/').at(-1))), picture(p)[0], el('p', { className: 'note' }, fits(p.gpus)))));
  $('examples').hidden = false;
}

jobs.askPrices().then(() => { if (now) offer(now); });
(async () => {
  if (hub.comeFromFrame()) return enter();
  const back = await hub.comeBack().catch(error => warn('sign-in', error, ...signInButton()));
  showAccount();
  const job = new URLSearchParams(location.search).get('job');
  fromAddress(back === true && !job);
  if (job && account.user) follow(job);
  else if (job) warn('job', new Problem('This address names a job', 'Sign in to see it. It goes on meanwhile.'), ...signInButton());
})();
