// Drives the page in headless Chromium. Fails on everything that a user, the Hub or the storage would have to complain about.
//
//   node check.mjs CHROMIUM SERVER PAGE_FOLDER DATA_FOLDER PROGRAM
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import puppeteer from 'puppeteer-core';

const [chromium, server, folder, data, program] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const faults = [];
const want = (ok, what) => { if (!ok) faults.push(what); };
process.on('exit', () => faults.forEach(fault => console.error(fault)));

const serving = spawn(server, [folder, data, program], { stdio: ['pipe', 'pipe', 'inherit'] });
const [, site, hub, store, inside] = String(await new Promise(ready => serving.stdout.once('data', ready))).trim().split(' ');
const browser = await puppeteer.launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });

// open opens the page in a tab of a browser without history, and listens to what goes wrong there.
async function open(path = '/', width = 1100, scheme = 'light') {
  const context = await browser.createBrowserContext();
  await context.overridePermissions(site, ['clipboard-read', 'clipboard-write']);
  const tab = await context.newPage();
  await tab.setViewport({ width, height: 900, isMobile: width < 600, hasTouch: width < 600, deviceScaleFactor: 1 });
  await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  tab.expected = []; // statuses that the browser logs
  tab.on('pageerror', error => want(false, `${path}: exception: ${error.message}`));
  tab.on('dialog', dialog => { want(false, `${path}: a name was markup`); dialog.dismiss(); });
  tab.on('console', m => want(tab.expected.some(status => m.text().includes(status)), `${path}: console: ${m.text()}`));
  tab.on('request', request => {
    const { origin } = new URL(request.url());
    want([site, hub, store, 'null'].includes(origin), `${path}: asked for ${request.url()}`);
    want(origin === hub || !request.headers().authorization, `${path}: the token went to ${origin}`);
  });
  await tab.goto(site + path);
  return tab;
}
const close = tab => tab.browserContext().close();
const shown = id => tab => tab.waitForFunction(id => !document.getElementById(id).hidden && !document.getElementById('state').dataset.busy, { timeout: 120_000 }, id);
const text = (tab, selector) => tab.$eval(selector, e => e.innerText);

// --- plan ---

// planned has the page plan a repo and compares the JSON with the program's.
async function planned(tab, repo) {
  const doc = await tab.evaluate(async repo => {
    const { stdout } = await run(['plan', '--json', '--', repo]);
    return JSON.parse(stdout);
  }, repo);
  const env = { HF_ENDPOINT: hub, HOME: '/nonexistent', GOMAXPROCS: '1' }; // a browser has one processor, on which memory depends
  const own = JSON.parse(spawnSync(program, ['plan', '--json', '--', repo], { env, encoding: 'utf8' }).stdout);
  compare(repo, doc, own);
  return doc;
}

// compare finds where two documents differ. What was asked of the Hub stands in brackets, and differs.
function compare(at, a, b) {
  const plain = v => typeof v === 'string' ? v.replace(/ \((GET|HEAD) [^)]*\)/, '').replace(': look up ', ': read ') : v;
  if (a && b && typeof a === 'object' && typeof b === 'object') {
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) compare(`${at}.${key}`, a[key], b[key]);
  } else want(plain(a) === plain(b), `${at}: the page says ${JSON.stringify(a)}, the program ${JSON.stringify(b)}`);
}

let fine = 0;
const layouts = ['llama', 'shards', 'scattered', 'tied', 'stored', 'qwen2', 'qwen3', 'large', 'unknown', 'diffusers', 'single', 'hostile',
  'f16', 'f32', 'gguf', 'pickle', 'adapter', 'empty', 'gated', 'nothing-there'];
const plans = await open();
for (const name of layouts) fine += (await planned(plans, 'org/' + name)).ok;
want(fine >= 8, `only ${fine} of the layouts can be converted`);
await planned(plans, 'no id');
await planned(plans, '-o');
await planned(plans, hub + '/org/llama/tree/main');
await close(plans);

// look holds the page against what every reader needs.
async function look(tab, name) {
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  want(wide <= 0, `${name}: hangs ${wide} pixels over the right edge`);
  want(!(await tab.$('main img')), `${name}: a name is markup`);
  await tab.evaluate(axe); // a debugger's script, which the page's policy does not stop
  const { violations } = await tab.evaluate(() => window.axe.run());
  for (const v of violations) want(false, `${name}: axe: ${v.id}: ${v.nodes.map(n => n.html.slice(0, 120)).join(' | ')}`);
  if (process.env.SCREENSHOTS) await tab.screenshot({ path: `${process.env.SCREENSHOTS}/${name}.png`, fullPage: true });
}

// --- what is shown ---

// A good DF11 repo and a damaged one.
const programs = (...args) => spawnSync(program, args, { env: { HF_ENDPOINT: inside, HF_TOKEN: 'hf_oauth_of_ann', HOME: data }, encoding: 'utf8' });
const made = programs('org/llama', '--push', '--repo-id', 'ann/good-DF11', '--quiet');
if (made.status !== 0) throw new Error(made.stderr);
await fetch(site + '/_test/damage', { method: 'POST' });

const views = [['desktop-light', 1100, 'light'], ['desktop-dark', 1100, 'dark'], ['phone-light', 390, 'light'], ['phone-dark', 390, 'dark']];
for (const [view, width, scheme] of views) {
  for (const [name, path, id] of [['large', '/?model=org/large', 'plan'], ['hostile', '/?model=org/hostile', 'plan'], ['plain', '/plain/?model=org/tied', 'plan'],
    ['refused', '/?model=org/f16', 'refused'], ['good', '/?check=ann/good-DF11', 'check'], ['bad', '/?check=ann/bad-DF11', 'check'], ['start', '/', 'who']]) {
    const tab = await open(path, width, scheme);
    await shown(id)(tab);
    if (name === 'plain') want(await tab.$eval('#no-oauth', e => !e.hidden) && await tab.$eval('#signed-out', e => e.hidden), 'without OAuth the page offers to sign in');
    await look(tab, `${name}-${view}`);
    await close(tab);
  }
}

// While the planner comes over a slow line, the page says so; a name that is markup stays text in every field.
{
  const tab = await open();
  await tab.setCacheEnabled(false);
  await tab.emulateNetworkConditions({ download: 400_000, upload: 400_000, latency: 20 });
  await tab.goto(`${site}/?model=org/llama`);
  await tab.waitForFunction(() => /^loading the planner: .* of 3\.\d+ MB/.test(document.getElementById('state').textContent));
  await tab.emulateNetworkConditions(null);
  await shown('plan')(tab);
  for (const mode of ['model', 'check']) {
    await tab.goto(`${site}/?` + new URLSearchParams({ [mode]: 'a/<img src=x onerror=alert(1)>' }));
    await shown('refused')(tab);
    want((await text(tab, '#refused-why')).includes('<img'), `${mode}: ${await text(tab, '#refused-why')}`);
    want(!(await tab.$('img')), `${mode}: a name is markup`);
  }
  // The policy holds for the page and for the worker in which the program runs.
  tab.expected.push('Content Security Policy', 'violates', 'Refused to connect');
  const reached = await tab.evaluate(async url => {
    const ask = `fetch('${url}').then(() => 'reached', () => 'stopped')`;
    const worker = new Worker(URL.createObjectURL(new Blob([ask + '.then(postMessage)'])));
    return [await fetch(url).then(() => 'reached', () => 'stopped'), await new Promise(done => { worker.onmessage = event => done(event.data); })];
  }, inside + '/api/models/org/llama');
  want(String(reached) === 'stopped,stopped', `another origin than the Hub: ${reached}`);
  await close(tab);
}

// --- check ---

// checked compares the page's verdict with the program's last line.
async function checked(tab, repo) {
  await tab.evaluate(repo => { ask(repo, 'check'); }, repo);
  await shown('check')(tab);
  const verdict = await text(tab, '#verdict'), own = programs('verify', '--level', 'structure', repo).stdout.trim().split('\n').at(-1);
  want(verdict === own, `${repo}: the page's verdict is ${verdict}, the program's ${own}`);
  return verdict;
}
{
  const tab = await open();
  want(/shows no fault/.test(await checked(tab, 'ann/good-DF11')), 'the good repo is not good');
  want(/is damaged/.test(await checked(tab, 'ann/bad-DF11')), 'the bad repo is not bad');
  tab.expected.push('404');
  await tab.evaluate(() => { ask('org/llama', 'check'); });
  await shown('refused')(tab);
  await close(tab);
}

// --- sign-in ---

{
  const tab = await open('/?model=org/llama&code=stolen&state=of-another');
  await shown('plan')(tab).catch(() => {});
  want(await tab.$eval('#sign-out', e => e.hidden) && !tab.url().includes('stolen'), 'an answer that was not asked for signs in, or stays in the address');
  await close(tab);
}
const tab = await open('/');
await tab.type('#model', 'org/large');
await tab.keyboard.press('Enter');
await shown('plan')(tab);
// press goes with the Tab key to an element, which must show that it has the focus, and presses Enter.
async function press(id) {
  for (let n = 0; n < 80 && await tab.evaluate(() => document.activeElement.id) !== id; n++) await tab.keyboard.press('Tab');
  want(await tab.evaluate(id => document.activeElement.id === id && getComputedStyle(document.activeElement).outlineStyle !== 'none', id), `${id}: not to be had by keys`);
  await tab.keyboard.press('Enter');
}
await press('sign-in');
await tab.waitForSelector('#yes');
want(tab.url().startsWith(hub + '/oauth/authorize?'), `signs in at ${tab.url()}`);
await Promise.all([tab.waitForNavigation(), tab.click('#yes')]);
await shown('plan')(tab);
want((await text(tab, '#who')).includes('ann'), 'not signed in');
want(tab.url() === site + '/?model=org%2Flarge', `after the sign-in the address is ${tab.url()}`);
want(await tab.$eval('#target', e => e.value) === 'ann/large-DF11', 'the target is not ann/large-DF11');
const secretive = async when => want(!await tab.evaluate(() => [document.documentElement.outerHTML, location.href, document.cookie, ...Object.values(localStorage),
  ...Object.values(sessionStorage), ...[...document.querySelectorAll('input')].map(e => e.value)].some(s => s.includes('hf_oauth_of_ann')) || sessionStorage.length + localStorage.length > 0),
`${when}: the token, or something of the sign-in, is kept`);
await secretive('after the sign-in');

// --- convert ---

const outcome = async title => {
  await tab.waitForFunction(() => !document.getElementById('outcome').hidden, { timeout: 240_000 });
  want((await text(tab, '#outcome-title')).startsWith(title), `want ${title}: ${await text(tab, '#outcome')}`);
};
await tab.evaluate(() => { // what moves while a job runs
  window.shifts = [];
  new PerformanceObserver(list => list.getEntries().forEach(e => e.hadRecentInput || window.shifts.push(e.value))).observe({ type: 'layout-shift' });
});
await fetch(site + '/_test/refuse/402', { method: 'POST' });
tab.expected.push('402');
await press('start');
await outcome('Your account has no credit');
want((await text(tab, '#outcome')).includes('<img'), 'the Hub\'s words are not shown');
await look(tab, 'refused-job');

await fetch(site + '/_test/hold', { method: 'POST' });
await press('start');
await tab.waitForFunction(() => document.getElementById('bar').hasAttribute('value'), { timeout: 120_000 });
for (const [view, width, scheme] of views) {
  await tab.setViewport({ width, height: 900 }); // with the same kind of device: another would load the page anew
  await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await look(tab, `running-${view}`);
}
await tab.setViewport({ width: 1100, height: 900 });
await tab.evaluate(() => document.getElementById('cancel').click());
await outcome('Canceled');
await tab.evaluate(() => { window.shifts = []; });
await press('start');
await outcome('Published: ann/large-DF11');
want((await text(tab, '#outcome-why')).includes(': 0 differ.'), await text(tab, '#outcome'));
const shifts = await tab.evaluate(() => window.shifts);
want(!shifts.length, `the page moves while a job runs: ${shifts}`);
await secretive('after the conversion');
for (const [view, width, scheme] of views) {
  await tab.setViewport({ width, height: 900 }); // with the same kind of device: another would load the page anew
  await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await look(tab, `published-${view}`);
}
const verified = programs('verify', 'ann/large-DF11', '--against', 'org/large', '--level', 'full', '--quiet');
want(verified.status === 0, `what was published: ${verified.stdout}${verified.stderr}`);
await press('start');
await outcome('It was up to date');
want(/shows no fault/.test(await checked(tab, 'ann/large-DF11')), 'what was published is not good');
await tab.evaluate(() => { ask('org/gated', 'model'); });
await shown('plan')(tab);
await tab.evaluate(() => document.querySelector('#visibility input[value="--private"]').checked || alert('a gated model becomes public'));
await tab.click('#sign-out');
want(await tab.$eval('#job', e => e.hidden) && await tab.$eval('#run', e => e.hidden), 'signed out, and a job can be started');

// --- the end ---

for (const wrong of await (await fetch(site + '/_test/wrong')).json() ?? []) faults.push(wrong);
await browser.close();
serving.kill();
if (faults.length) process.exit(1);
console.log(`the page: ${layouts.length} repos planned as by the program; signed in, converted, canceled, resumed, published, checked`);
