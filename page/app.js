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
const account = {}; // token, expires, user

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
  const answer = await fetch(`${hub}/api/models?` + new URLSearchParams({ search: name, limit: 20 }), { headers: bearer() });
  const found = answer.ok ? (await answer.json()).map(m => m.id).filter(id => id.toLowerCase().endsWith('/' + name.toLowerCase())) : [];
  if (!current() || !found.length) return;
  fill('there', 'Already there: ', ...found.slice(0, 5).flatMap((id, i) => [i ? ', ' : '', link(id), ' (', el('a', { href: '?check=' + encodeURIComponent(id) }, 'check'), ')']), '.');
}

const bearer = () => account.token ? { Authorization: 'Bearer ' + account.token } : {};

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

// --- start --------------------------------------------------------------------------------------------------------------

$('ask').onsubmit = event => {
  event.preventDefault();
  ask($('model').value, event.submitter?.value === 'check' ? 'check' : 'model');
};
$('version').textContent = 'Version ' + version + '.';
const query = new URLSearchParams(location.search);
for (const mode of ['model', 'check']) if (query.get(mode)) ask(query.get(mode), mode);
program ??= load(text => $('state').dataset.busy && say(text + ' …')).catch(() => { program = undefined; });
