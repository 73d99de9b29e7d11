'use strict';
// The page runs the program itself, built for browsers (worker.js), and shows what it says. Everything from outside is text, never
// markup; the token is in this script's memory alone.

const $ = id => document.getElementById(id);
const setting = name => document.querySelector(`meta[name="${name}"]`).content;
const hub = setting('hub'), version = setting('version');
const tag = version === 'dev' ? 'latest' : version;
const image = 'ghcr.io/df11-convert/df11-convert:' + tag;

// el makes an element with properties and children.
function el(name, props = {}, ...children) {
  const e = Object.assign(document.createElement(name), props);
  e.append(...children);
  return e;
}
const fill = (id, ...children) => $(id).replaceChildren(...children);
const say = text => { $('state').textContent = text; };
const link = (repo, text = repo) => el('a', { href: hub + '/' + repo, rel: 'noopener', target: '_blank' }, text);

// bytes and percent are written as the program writes them.
function bytes(n) {
  let unit = 0;
  for (; n >= 999.5 && unit < 4; unit++) n /= 1000;
  return (n >= 100 || n === Math.trunc(n) ? n.toFixed(0) : n.toPrecision(3)) + ' ' + ['B', 'kB', 'MB', 'GB', 'TB'][unit];
}
const percent = (part, whole) => (whole ? 100 * part / whole : 0).toFixed(1) + ' %';

// --- the program --------------------------------------------------------------------------------------------------------

let program; // a promise of its module and of what runs it
let runs; // the worker at work

// load fetches and compiles the program, and tells how far it is.
async function load(tell) {
  const text = async name => (await fetch(name)).text();
  const sources = Promise.all([text('wasm_exec.js'), text('worker.js')]);
  const answer = await fetch('plan.wasm.gz');
  if (!answer.ok) throw new Error(`plan.wasm.gz: ${answer.status}`);
  const all = +answer.headers.get('Content-Length'), pieces = [];
  let got = 0;
  for (const reader = answer.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    tell(`loading the planner: ${bytes(got += value.length)}${all >= got ? ' of ' + bytes(all) : ''}`);
  }
  tell('starting the planner');
  let stream = new Blob(pieces).stream();
  if (pieces[0][0] === 0x1f) stream = stream.pipeThrough(new DecompressionStream('gzip')); // some servers have unpacked it
  const module = await WebAssembly.compileStreaming(new Response(stream, { headers: { 'Content-Type': 'application/wasm' } }));
  return { module, source: URL.createObjectURL(new Blob(await sources, { type: 'text/javascript' })) };
}

// run runs the program and gives what it prints. A run that has not ended is ended.
async function run(args, tell = () => {}) {
  runs?.terminate();
  program ??= load(text => $('state').dataset.busy && say(text + ' …')).catch(error => { program = undefined; throw error; });
  const { module, source } = await program;
  const worker = runs = new Worker(source); // of a blob, so that it is bound by this page's policy
  return new Promise((yes, no) => {
    worker.onerror = event => no(new Error(event.message || 'the planner did not start'));
    worker.onmessage = ({ data }) => {
      if (data.line !== undefined) return tell(data.line);
      worker.terminate();
      yes(data);
    };
    const env = { HOME: '/', HF_ENDPOINT: hub };
    if (account.token) env.HF_TOKEN = account.token;
    worker.postMessage({ module, args, env });
  });
}

// messages reads a log of --log-format json.
const messages = log => log.split('\n').flatMap(line => {
  try { return [JSON.parse(line)]; } catch { return []; }
});

// --- plan ---------------------------------------------------------------------------------------------------------------

let asked = 0; // counts questions: an answer to an old one is not shown
let account = {}; // token, ends, user

async function ask(name, mode) {
  const mine = ++asked;
  name = name.trim();
  for (const id of ['plan', 'check', 'refused']) $(id).hidden = true;
  $('model').value = name;
  history.replaceState(null, '', '?' + new URLSearchParams({ [mode]: name }));
  $('state').dataset.busy = 'yes';
  say('reading headers …');
  try {
    await (mode === 'check' ? check : plan)(name, () => mine === asked);
  } catch (error) {
    if (mine === asked) refuse('That did not work', error.message, ['reload the page and try again']);
  }
  if (mine !== asked) return;
  say('');
  delete $('state').dataset.busy;
}

function refuse(title, why, hints) {
  $('refused-title').textContent = title;
  $('refused-why').textContent = why;
  fill('refused-hints', ...hints.filter(Boolean).map(hint => el('li', {}, hint)));
  $('refused').hidden = false;
}

// tell shows what the program waits for.
const tell = log => messages(log).forEach(m => m.level === 'INFO' && say(m.msg + ' …'));

async function plan(name, current) {
  const { stdout, stderr } = await run(['plan', '--json', '--log-format', 'json', '--', name], log => current() && tell(log));
  if (!current()) return;
  let doc;
  try { doc = JSON.parse(stdout); } catch { throw new Error(stderr.slice(0, 2000) || 'the planner ended without an answer'); }
  if (!doc.ok && !doc.estimate) {
    const { kind, hint = '' } = doc.error;
    const message = messages(stderr).findLast(m => m.level === 'ERROR')?.msg ?? doc.error.message;
    const titles = { not_convertible: 'This model cannot be converted', not_found: 'There is no such model' };
    return refuse(titles[kind] ?? (doc.exit_code === 4 ? 'The Hub does not show it to you' : 'This cannot be planned'), message, hint.split('\n'));
  }
  show(doc, name);
  there(doc, current);
}

function show(doc, name) {
  const { source_bytes: before, output_bytes_estimate: after, plain_bytes: plain } = doc;
  const stays = Math.min(after, plain + doc.units.reduce((n, u) => n + (u.stays_bf16 ? u.bytes : 0), 0));
  fill('plan-title', link(doc.source));
  $('plan-meta').textContent = [doc.commit && 'commit ' + doc.commit.slice(0, 12), doc.layout, doc.private && 'private', doc.gated && 'gated'].filter(Boolean).join(' · ');
  $('gain').textContent = doc.gain;
  const figures = [[bytes(before), 'in BF16'], [(doc.estimate.exact ? '' : '≈ ') + bytes(after), 'as DF11'], [percent(after, before), 'of the size'],
    [bytes(Math.max(0, before - after)), 'saved']];
  fill('figures', ...figures.map(([figure, of]) => el('div', {}, el('dt', {}, of), el('dd', {}, figure))));
  const parts = [[before, 0], [after - stays, 1], [stays, 2]];
  const bars = $('picture').querySelectorAll('i');
  for (const [n, i] of parts) bars[i].style.width = `calc((100% - 64px) * ${n / Math.max(before, after)})`;
  $('picture').querySelectorAll('span').forEach((span, i) => { span.textContent = ['BF16', 'DF11'][i]; });
  $('picture').ariaLabel = `${bytes(before)} in BF16 become ${bytes(after)} as DF11, of which ${bytes(stays)} stay BF16`;
  fill('legend', ...[['c-s', 'BF16'], ['c-e', `compressed, ${bytes(after - stays)}`], ['c-o', `stays BF16, ${bytes(stays)}`]].map(([kind, text]) =>
    el('span', {}, el('i', { className: kind }), text)));

  const lists = [['Take care', doc.warnings], ['Differs from the official route', doc.differences], ['Equal, so stored once', doc.aliases]];
  fill('remarks', ...lists.filter(([, lines]) => lines).flatMap(([title, lines]) => [el('h3', {}, title), el('ul', {}, ...lines.map(line => el('li', {}, line)))]));
  fill('plain', ...reasons(doc));
  fill('readers', ...(doc.readers ?? []).map(r => el('tr', {}, el('td', {}, r.name), el('td', {}, r.version),
    el('td', { className: r.loads === 'yes' ? 'yes' : 'no' }, r.loads), el('td', {}, r.why ?? ''))));
  $('others').textContent = (doc.other_readers ?? []).map(r => `${r.name} reads DF11 folders; not tested by us: ${r.url}`).join('\n');
  const fits = yes => el('td', { className: yes ? 'yes' : 'no' }, yes ? 'fits' : 'no');
  fill('gpus', ...doc.gpus.map(g => el('tr', {}, el('td', {}, (g.n > 1 ? g.n + ' × ' : '') + g.gib + ' GB'), fits(g.bf16_fits), fits(g.df11_fits))));

  offer(doc, name);
  const pinned = /@|\/tree\//.test(name) ? doc.source + '@' + doc.commit : doc.source;
  fill('commands', ...recipes(pinned, target(doc.source)));
  const words = $('words');
  words.open = false;
  words.ontoggle = async () => {
    if (!words.open) return;
    words.ontoggle = null;
    const { stdout } = await run(['plan', '--quiet', '--', name]);
    words.querySelector('pre').textContent = stdout;
  };
  $('plan').hidden = false;
}

// reasons groups what passes through unchanged by why it does, largest first.
function reasons(doc) {
  const groups = new Map();
  const add = (why, n, size, name) => {
    const g = groups.get(why) ?? { n: 0, size: 0, name };
    groups.set(why, { n: g.n + n, size: g.size + size, name: g.name });
  };
  for (const t of doc.remainder ?? []) add(t.why, 1, t.bytes, t.name);
  for (const u of doc.units) if (u.stays_bf16) add('the module ' + u.stays_bf16, u.tensors, u.bytes, u.path);
  const siblings = doc.units.reduce((n, u) => n + u.siblings, 0);
  const rows = [...groups].sort(([, a], [, b]) => b.size - a.size).map(([why, g]) =>
    el('li', {}, `${bytes(g.size)} in ${g.n} ${g.n === 1 ? 'tensor' : 'tensors'}: ${why}, such as `, el('code', {}, g.name)));
  if (siblings) rows.push(el('li', {}, `${siblings} norms and biases inside compressed modules`));
  return rows.length ? rows : [el('li', {}, 'nothing')];
}

const target = source => (account.user ?? 'YOU') + '/' + source.split('/').at(-1) + '-DF11';

// recipes are what can be copied. Ids and commits hold no character that a shell or YAML would read.
function recipes(source, to) {
  const workflow = `name: df11
on: {schedule: [{cron: "17 4 * * 1"}], workflow_dispatch: }
permissions: {contents: read}
concurrency: df11
jobs:
  convert:
    runs-on: ubuntu-24.04
    environment: huggingface
    timeout-minutes: 355
    steps:
      - uses: df11-convert/df11-convert@${tag === 'latest' ? 'main' : 'v' + tag}
        with: {source: ${source}, repo-id: ${to}, token: "\${{ secrets.HF_TOKEN }}"}`;
  return [
    ['Python', `uvx df11-convert ${source} --push --repo-id ${to}`],
    ['Container', `docker run --rm -e HF_TOKEN ${image} ${source} --push --repo-id ${to}`],
    ['Every week, on GitHub', workflow],
    ['An entry of models.yaml, for df11-convert batch', `  - {source: ${source}, repo-id: ${to}}`],
  ].map(([title, text]) => el('div', {}, el('p', { className: 'note' }, title), copyable(text, title)));
}

function copyable(text, title) {
  const button = el('button', { type: 'button', ariaLabel: 'Copy: ' + title }, 'Copy');
  button.onclick = async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  };
  return el('div', { className: 'copy' }, el('pre', { tabIndex: 0 }, text), button);
}

// there looks for DF11 repos of the model that exist.
async function there(doc, current) {
  $('there').textContent = '';
  const name = doc.source.split('/').at(-1) + '-DF11';
  const models = await api('/api/models?' + new URLSearchParams({ search: name, limit: 20 })).then(answer => answer.json()).catch(() => []);
  const found = models.map(m => m.id).filter(id => id.toLowerCase().endsWith('/' + name.toLowerCase()));
  if (!current() || !found.length) return;
  fill('there', 'Already there: ', ...found.slice(0, 5).flatMap((id, i) => [i ? ', ' : '', link(id), ' (', el('a', { href: '?check=' + encodeURIComponent(id) }, 'check'), ')']), '.');
}

// --- check --------------------------------------------------------------------------------------------------------------

async function check(name, current) {
  const { code, stdout, stderr } = await run(['verify', '--level', 'structure', '--log-format', 'json', '--', name], log => current() && tell(log));
  if (!current()) return;
  const failure = messages(stderr).findLast(m => m.level === 'ERROR');
  const lines = stdout.trimEnd().split('\n');
  if (!stdout) return refuse('This cannot be checked', failure?.msg ?? stderr, failure?.hints ?? []);
  $('verdict').textContent = lines.pop();
  $('checked').textContent = lines.join('\n');
  fill('check-commands', copyable(`uvx df11-convert verify ${name.replace(/[^\w./@:-]/g, '')} --level proof`, 'Proof'));
  $('check').hidden = false;
  $('check').dataset.code = code;
}

// --- sign-in ------------------------------------------------------------------------------------------------------------

const client = window.huggingface?.variables?.OAUTH_CLIENT_ID || setting('oauth-client'); // a Space brings its own
const scope = 'openid profile jobs contribute-repos gated-repos';
const here = location.origin + location.pathname;
const stored = 'df11-sign-in'; // of this session, from leaving for the Hub until coming back: no token
const base64url = raw => btoa(String.fromCharCode(...raw)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

async function signIn() {
  const verifier = random(), state = random();
  sessionStorage.setItem(stored, JSON.stringify({ verifier, state, query: location.search }));
  const challenge = base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));
  location.assign(hub + '/oauth/authorize?' + new URLSearchParams({
    client_id: client, redirect_uri: here, response_type: 'code', scope, state, code_challenge: challenge, code_challenge_method: 'S256',
  }));
}

// comeBack takes the Hub's answer out of the address, checks that it is one to this tab's question, and gets the token.
async function comeBack() {
  const query = new URLSearchParams(location.search), asked = JSON.parse(sessionStorage.getItem(stored));
  sessionStorage.removeItem(stored);
  if (!query.has('state')) return;
  history.replaceState(null, '', here + (asked?.query ?? ''));
  if (query.get('state') !== asked?.state) throw new Error('The answer to a sign-in that this tab has not begun was thrown away.');
  if (!query.has('code')) throw new Error('The Hub has not signed you in: ' + (query.get('error_description') ?? query.get('error')));
  say('signing in …');
  const form = { grant_type: 'authorization_code', client_id: client, code: query.get('code'), redirect_uri: here, code_verifier: asked.verifier };
  const answer = await (await api('/oauth/token', { method: 'POST', body: new URLSearchParams(form) })).json();
  account = { token: answer.access_token, ends: Date.now() + 1000 * answer.expires_in };
  account.user = (await (await api('/oauth/userinfo')).json()).preferred_username;
  say('');
}

function showAccount() {
  const framed = window.top !== window;
  $('who').textContent = account.user ? `Signed in as ${account.user}.` : '';
  $('sign-out').hidden = $('job').hidden = !account.user;
  $('no-oauth').hidden = !!client;
  $('framed').hidden = !client || !framed;
  $('signed-out').hidden = !client || framed || !!account.user;
  $('unframe').href = location.href;
}

// api asks the Hub, and it alone.
async function api(path, { headers, ...options } = {}) {
  const bearer = account.token ? { Authorization: 'Bearer ' + account.token } : {};
  const answer = await fetch(hub + path, { ...options, headers: { ...bearer, ...headers }, credentials: 'omit' });
  if (answer.ok) return answer;
  const { error, error_description: more } = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(error ? `the Hub says: ${more ?? error}` : `the Hub answers with ${answer.status}`), { status: answer.status });
}

// --- convert ------------------------------------------------------------------------------------------------------------

// What a job takes: bytes a second in both directions together, as a user of Jobs measured in 403 of them on 12 July 2026; dollars an
// hour, of November 2026, unless the Hub tells others.
const machines = [
  { flavor: 'cpu-performance', what: '32 processors', rate: 1348 * 2 ** 20, price: 1.9 },
  { flavor: 'cpu-upgrade', what: '8 processors', rate: 16 * 2 ** 20, price: 0.03 },
];
const startup = 75; // seconds
const seconds = (machine, { download_bytes: down, upload_bytes: up }) => startup + (down + up) / machine.rate;
const span = s => s < 90 * 60 ? Math.ceil(s / 60) + ' min' : (s / 3600).toFixed(1) + ' h';
const choice = (name, value, text, checked) => el('label', { className: 'choice' }, el('input', { type: 'radio', name, value, checked }), el('span', {}, text));
const waiting = 'waiting for the machine';
let following; // the job that is shown

// offer prepares the form for a plan.
function offer(doc, name) {
  following = undefined;
  $('run').hidden = true;
  $('start').disabled = false;
  showAccount();
  $('target').value = account.user ? target(doc.source) : '';
  const closed = !!(doc.private || doc.gated);
  fill('visibility', choice('visibility', closed ? '--public' : '', closed ? 'Everybody: the license of this model allows that' : 'Everybody', !closed),
    choice('visibility', '--private', 'You, and whom you let in', closed));
  const { needs } = doc.estimate;
  const list = () => fill('machines', ...machines.map((m, i) => {
    const s = seconds(m, needs), cost = s / 3600 * m.price;
    return choice('machine', i, `${m.flavor}, ${m.what}: about ${span(s)}, about $${cost < 0.01 ? '0.01' : cost.toFixed(2)}`, i === 0);
  }));
  const note = prices => { $('prices').textContent = `Times after speeds measured in July 2026, which vary; ${prices}. You pay for the seconds that are used.`; };
  list();
  note('prices of November 2026');
  if (account.token) {
    api('/api/jobs/hardware').then(answer => answer.json()).then(all => {
      for (const m of machines) {
        const now = all.find(h => h.name === m.flavor);
        if (now) m.price = now.unitCostUSD * ({ minute: 60, second: 3600 }[now.unitLabel] ?? 1);
      }
      list();
      note('prices as the Hub tells them now');
    }).catch(() => {});
    api('/api/jobs/' + account.user).then(answer => answer.json()).then(jobs => {
      const mine = jobs.find(j => running(j) && j.command?.includes(target(doc.source)));
      if (mine && !following) follow(mine);
    }).catch(() => {});
  }
  $('job').onsubmit = event => {
    event.preventDefault();
    const chosen = field => new FormData($('job')).get(field);
    const machine = machines[chosen('machine')];
    const command = ['df11-convert', name, '--push', '--repo-id', $('target').value, '--work-dir', '/tmp/df11', '--log-format', 'json', '--json'];
    if (chosen('visibility')) command.push(chosen('visibility'));
    start(machine, command, seconds(machine, needs));
  };
}

const running = job => !['COMPLETED', 'CANCELED', 'ERROR', 'DELETED', 'DELETING', 'STOPPED'].includes(job.status.stage);

// refusals are the Hub's answers to a job in plain words.
const refusals = {
  401: ['Your sign-in has ended', 'sign in again'],
  402: ['Your account has no credit for jobs', 'jobs are paid in advance: add credit in the billing settings of your account, then start the job again'],
  403: ['The Hub does not let you start this job', 'sign out, sign in again and agree to all three rights; an organization may forbid it'],
  404: ['The Hub knows no jobs for your account', 'run one of the commands below yourself'],
  429: ['The Hub has had too many questions', 'wait some minutes, then start the job again'],
};
const resume = 'start the job again: it goes on with what was published';

async function start(machine, command, expected) {
  if (account.ends - Date.now() < 1500 * expected) {
    return finish(false, 'The job could outlive your sign-in', '', ['sign out and in again, or run one of the commands below yourself']);
  }
  begin('asking the Hub for a machine');
  try {
    const job = await (await api('/api/jobs/' + account.user, {
      method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({
        dockerImage: image, command, arguments: [], environment: {}, secrets: { HF_TOKEN: account.token }, flavor: machine.flavor,
        timeoutSeconds: Math.round(Math.max(1800, 4 * expected)),
      }),
    })).json();
    await follow(job);
  } catch (error) {
    const [title, hint] = refusals[error.status] ?? ['The job did not start', 'try again, or run one of the commands below yourself'];
    finish(false, title, error.message, [hint]);
  }
}

// begin shows progress where the outcome will be, so that nothing moves.
function begin(phase) {
  $('start').disabled = $('cancel').disabled = true;
  $('bar').removeAttribute('value');
  $('phase').textContent = phase;
  $('step').textContent = $('log').textContent = '';
  for (const id of ['run', 'progress']) $(id).hidden = false;
  $('outcome').hidden = true;
}

// follow shows a job until it has ended. Its log comes from its beginning whenever the stream is opened.
async function follow(job) {
  following = job;
  const shown = () => following === job;
  begin(waiting);
  $('cancel').disabled = false;
  const path = `/api/jobs/${account.user}/${job.id}`;
  $('cancel').onclick = async () => {
    $('cancel').disabled = true;
    $('step').textContent = 'canceling …';
    await api(path + '/cancel', { method: 'POST' }).catch(error => { $('step').textContent = error.message; $('cancel').disabled = false; });
  };
  for (let wait = 1; ; wait = Math.min(2 * wait, 30)) {
    let lines = [], state;
    try {
      for await (const line of events(await api(path + '/logs', { headers: { Accept: 'text/event-stream' } }))) {
        if (!shown()) return;
        lines.push(line);
        progress(line);
        $('log').textContent = lines.slice(-200).join('\n');
      }
      state = await (await api(path)).json();
    } catch (error) {
      if (error.status) return shown() && finish(false, ...(refusals[error.status] ?? ['The job is out of sight', '']).slice(0, 1), error.message, ['the job goes on: see the list of jobs on the Hub']);
    }
    if (!shown()) return;
    if (state && !running(state)) return end(state, lines);
    await new Promise(done => setTimeout(done, 1000 * wait)); // the line broke: open it again
  }
}

// events reads the lines of a stream of server-sent events.
async function* events(answer) {
  let rest = '';
  for (const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const messages = (rest + value).split('\n');
    rest = messages.pop();
    for (const message of messages) {
      if (message.startsWith('data:')) yield String(JSON.parse(message.slice(5)).data ?? '').trimEnd();
    }
  }
}

// progress shows a line of the program's log.
function progress(line) {
  const [m] = messages(line);
  if (m && $('phase').textContent === waiting) $('phase').textContent = 'the job runs';
  if (m?.msg === 'progress') {
    $('bar').value = m.percent;
    $('phase').textContent = `${m.phase}: ${m.percent} %, ${m.files} of ${m.files_total} files` + (m.seconds_left ? `, about ${span(m.seconds_left)} left` : '');
    $('step').textContent = `${bytes(m.bytes)} of ${bytes(m.bytes_total)} compared with the original`;
  } else if (m?.msg) {
    $('step').textContent = m.msg + (m.file ? ': ' + m.file : '');
  }
}

// end shows what came out of a job.
function end(job, lines) {
  const from = lines.indexOf('{'), to = lines.indexOf('}', from);
  let doc = {};
  try { doc = JSON.parse(lines.slice(from, to + 1).join('\n')); } catch { /* it has not come that far */ }
  const failure = messages(lines.join('\n')).findLast(m => m.level === 'ERROR');
  if (doc.ok) {
    const { weights, by_this_run: now } = doc.verified;
    const verdict = `${weights.toLocaleString('en')} weights compared with the original, all 16 bits: 0 differ.`;
    finish(true, now ? 'Published' : 'It was up to date', now ? verdict : 'It was verified when it was made, says its manifest.', [doc.gain].filter(Boolean));
    $('outcome-title').append(': ', link(doc.target.repo));
  } else if (job.status.stage === 'CANCELED') {
    finish(false, 'Canceled', '', [resume]);
  } else {
    finish(false, 'The job has failed', failure?.msg ?? job.status.message ?? lines.at(-1) ?? '', [...(failure?.hints ?? []), resume]);
  }
}

function finish(good, title, why, hints) {
  following = undefined;
  $('progress').hidden = true;
  $('run').hidden = $('start').disabled = false;
  $('outcome').classList.toggle('good', good);
  $('outcome-title').textContent = title;
  $('outcome-why').textContent = why;
  fill('outcome-hints', ...hints.map(hint => el('li', {}, hint)));
  $('outcome').hidden = false;
}

// --- start --------------------------------------------------------------------------------------------------------------

$('ask').onsubmit = event => {
  event.preventDefault();
  ask($('model').value, event.submitter?.value === 'check' ? 'check' : 'model');
};
$('sign-in').onclick = signIn;
$('sign-out').onclick = () => {
  account = {};
  following = undefined;
  $('run').hidden = true;
  $('who').textContent = '';
  showAccount();
};
$('version').textContent = 'Version ' + version + '.';

(async () => {
  program ??= load(text => $('state').dataset.busy && say(text + ' …')).catch(() => { program = undefined; });
  await comeBack().catch(error => refuse('You are not signed in', error.message, ['sign in again']));
  showAccount();
  const query = new URLSearchParams(location.search);
  for (const mode of ['model', 'check']) if (query.get(mode)) ask(query.get(mode), mode);
})();
