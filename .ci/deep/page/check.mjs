// Drives the page in headless Chromium. Fails on everything that a user, the Hub or the storage would have to complain about.
//
//   node check.mjs CHROMIUM SERVER PAGE_FOLDER DATA_FOLDER PROGRAM FIREFOX
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import puppeteer from 'puppeteer-core';
import { cases } from './cases.mjs';
import { asked, begin, play } from './world.mjs';

const [chromium, server, folder, data, program, firefox] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const faults = [];
const want = (ok, what) => { if (!ok) { faults.push(what); console.error('FAULT', what); } };
const world = await begin({ server, folder, data, program, root: process.cwd() });
const { site, hub, store, inside } = world;
const launch = options => puppeteer.launch({ args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'], ...options });
const browser = await launch({ executablePath: chromium });

// open opens the page in a tab of a browser without history, and listens to what goes wrong there.
async function open(path = '/', { width = 1280, fast = 1, expected = [], before, kept, context } = {}) {
  context ??= await browser.createBrowserContext();
  const tab = await context.newPage();
  await tab.setViewport({ width, height: 900, isMobile: width < 600, hasTouch: width < 600, deviceScaleFactor: 1 });
  await paint(tab, 'light');
  if (fast > 1) {
    await tab.evaluateOnNewDocument(factor => { // a clock that runs so much faster
      const [set, now, began] = [setTimeout, Date.now, Date.now()];
      window.setTimeout = (f, ms, ...rest) => set(f, (ms ?? 0) / factor, ...rest);
      Date.now = () => began + (now() - began) * factor;
    }, fast);
  }
  if (kept) await tab.evaluateOnNewDocument(plans => { for (const [key, text] of Object.entries(plans)) sessionStorage.setItem(key, text); }, kept);
  if (before) await tab.evaluateOnNewDocument(before);
  listen(tab, path, expected);
  await tab.goto(site + path);
  return tab;
}
// paint shows a tab as somebody wants it: light, dark, in forced colors, or on paper.
async function paint(tab, look) {
  const cdp = tab.painter ??= await tab.createCDPSession();
  const features = [
    { name: 'forced-colors', value: look === 'forced' ? 'active' : 'none' },
    { name: 'prefers-color-scheme', value: ['light', 'print'].includes(look) ? 'light' : 'dark' },
  ];
  await cdp.send('Emulation.setEmulatedMedia', { media: look === 'print' ? 'print' : 'screen', features });
}
function listen(tab, path, expected) {
  tab.on('pageerror', error => want(expected === 'any', `${path}: exception: ${error.message}`));
  tab.on('dialog', dialog => { want(false, `${path}: a name was markup`); dialog.dismiss(); });
  tab.on('console', m => want(expected === 'any' || expected.some(text => m.text().includes(text)), `${path}: console: ${m.text()}`));
  tab.on('request', request => {
    const { origin } = new URL(request.url());
    want([site, hub, store, 'null'].includes(origin), `${path}: asked for ${request.url()}`);
    want(origin === hub || !request.headers().authorization, `${path}: the token went to ${origin}`);
  });
}
const close = tab => tab.browserContext().close();
const text = (tab, selector) => tab.$eval(selector, e => e.innerText);
const says = (tab, selector, pattern, timeout = 60_000) => tab.waitForFunction((s, p) => {
  const e = document.querySelector(s);
  return e?.checkVisibility() && new RegExp(p, 's').test(e.innerText);
}, { timeout }, selector, pattern.source);
const seen = (tab, selector, timeout = 60_000) => says(tab, selector, /./, timeout);
const idle = tab => tab.waitForFunction(() => document.getElementById('progress').innerText.trim() === '', { timeout: 120_000 });

// agree presses the sign-in button and agrees.
async function agree(tab, selector = '#sign-in') {
  await Promise.all([tab.waitForNavigation(), tab.click(selector)]);
  await tab.waitForSelector('#yes');
  await Promise.all([tab.waitForNavigation(), tab.click('#yes')]);
}

// planned is what a tab keeps that has planned org/llama. A case that is about something else begins with it.
async function planned() {
  const tab = await open('/?model=org/llama');
  await seen(tab, '#plan-title');
  await idle(tab);
  const kept = await tab.evaluate(() => ({ ...sessionStorage }));
  await close(tab);
  return kept;
}

// --- the same answers as the program's ---

// compare finds where two documents differ. What was asked of the Hub stands in brackets, and differs.
function compare(at, a, b) {
  const plain = v => typeof v === 'string' ? v.replace(/ \((GET|HEAD) [^)]*\)/, '').replace(': look up ', ': read ') : v;
  if (a && b && typeof a === 'object' && typeof b === 'object') {
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) compare(`${at}.${key}`, a[key], b[key]);
  } else want(plain(a) === plain(b), `${at}: the page says ${JSON.stringify(a)}, the program ${JSON.stringify(b)}`);
}
const run = (tab, args) => tab.evaluate(async args => (await import(document.querySelector('script[src$="view.js"]').src.replace('view.js', 'planner.js'))).run(args), args);
// own is the program's. It must not ask what this process serves, which waits for it.
const own = (args, env) => spawnSync(program, args, { env: { HF_ENDPOINT: inside, HOME: '/nonexistent', GOMAXPROCS: '1', ...env }, encoding: 'utf8' });
const layouts = ['llama', 'shards', 'scattered', 'tied', 'stored', 'qwen2', 'qwen3', 'large', 'unknown', 'diffusers', 'single', 'hostile',
  'f16', 'f32', 'gguf', 'pickle', 'adapter', 'empty', 'gated', 'nothing-there'];

async function equality() {
  const tab = await open();
  let fine = 0;
  for (const name of [...layouts.map(l => 'org/' + l), 'no id', '-o']) {
    for (const more of [['--sample-bytes', '0'], []]) {
      const args = ['plan', '--json', ...more, '--', name];
      const doc = JSON.parse((await run(tab, args)).stdout);
      compare(name, doc, JSON.parse(own(args).stdout.replaceAll(inside, hub)));
      fine += doc.ok;
    }
  }
  want(fine >= 16, `only ${fine} plans of layouts are good`);
  await close(tab);
}

// --- looks ---

// look holds the page against what every reader needs.
async function look(tab, name) {
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  want(wide <= 0, `${name}: hangs ${wide} pixels over the right edge`);
  want(!(await tab.$('main :is(img, script, iframe)')), `${name}: a name is markup`);
  const [links, text] = await tab.evaluate(() => [[...document.querySelectorAll('a')].map(a => a.href), document.body.innerText + document.title]);
  want(links.every(href => /^https?:/.test(href)), `${name}: links to ${links}`);
  want(!/[\u202a-\u202e\u2066-\u2069]/.test(text), `${name}: raw marks of direction`);
  if (/light|dark/.test(name)) { // what else axe looks at is the same in all colors
    await tab.evaluate(axe); // a debugger's script, which the page's policy does not stop
    const { violations } = await tab.evaluate(() => window.axe.run());
    for (const v of violations) want(false, `${name}: axe: ${v.id}: ${v.nodes.map(n => n.html.slice(0, 120)).join(' | ')}`);
  }
  if (process.env.SCREENSHOTS) await tab.screenshot({ path: `${process.env.SCREENSHOTS}/${name}.png`, fullPage: true });
}
const paints = ['light', 'dark', 'forced', 'print'];

function countShifts() {
  window.shift = 0;
  const count = list => list.getEntries().forEach(e => { window.shift += e.hadRecentInput ? 0 : e.value; });
  new PerformanceObserver(count).observe({ type: 'layout-shift', buffered: true });
}

async function looks() {
  for (const width of [1280, 360]) {
    for (const [name, path, id] of [['large', '/?model=org/large', '#plan-title'], ['hostile', '/?model=org/hostile', '#plan-title'], ['plain', '/plain/?model=org/tied', '#no-job'],
      ['refused', '/?model=org/f16', '#about-answer'], ['good', '/?check=ann/good-DF11', '#verdict'], ['bad', '/?check=ann/bad-DF11', '#verdict'], ['start', '/', '#examples']]) {
      const tab = await open(path, { width, before: countShifts });
      await seen(tab, id, 120_000);
      await idle(tab);
      const shift = await tab.evaluate(() => window.shift);
      want(shift < 0.05, `${name}-${width}: layout shift of ${shift}`);
      if (name === 'large') {
        const [top, bottom] = await tab.evaluate(() => ['plan-title', 'start'].map(id => document.getElementById(id).getBoundingClientRect()).map((box, i) => i ? box.bottom : box.top));
        want(top >= 0 && bottom <= 900, `${name}-${width}: the first screen does not go from the name to the button: ${top} to ${bottom}`);
        await tab.$$eval('details', all => all.forEach(d => { d.open = true; }));
      }
      for (const color of paints) {
        await paint(tab, color);
        await look(tab, `${name}-${width}-${color}`);
      }
      await close(tab);
    }
  }
}

// --- the straight road ---

// secretive makes sure that no place keeps anything of the sign-in.
async function secretive(tab, when) {
  const { texts, keys, local } = await tab.evaluate(() => ({
    texts: [document.documentElement.outerHTML, location.href, document.cookie, ...Object.values(sessionStorage), ...[...document.querySelectorAll('input')].map(e => e.value)],
    keys: Object.keys(sessionStorage), local: localStorage.length,
  }));
  want(!texts.some(s => s.includes('hf_oauth_of_ann')), `${when}: the token is kept`);
  want(keys.every(k => /^df11-(plan:|choices$)/.test(k)) && local === 0, `${when}: something of the sign-in is kept: ${keys}`);
}

// press goes with the Tab key to an element, which must show that it has the focus, and presses Enter.
async function press(tab, id) {
  for (let n = 0; n < 80 && await tab.evaluate(() => document.activeElement.id) !== id; n++) await tab.keyboard.press('Tab');
  want(await tab.evaluate(id => document.activeElement.id === id && getComputedStyle(document.activeElement).outlineStyle !== 'none', id), `${id}: not to be had by keys`);
  await tab.keyboard.press('Enter');
}

// lookAround looks at a tab in all sizes and colors. The kind of device stays: another would load the page again.
async function lookAround(tab, name) {
  for (const width of [360, 1280]) {
    await tab.setViewport({ width, height: 900 });
    for (const color of paints) {
      await paint(tab, color);
      await look(tab, `${name}-${width}-${color}`);
    }
  }
  await paint(tab, 'light'); // on paper there are no buttons
}

async function road() {
  const tab = await open('/', { fast: 6, expected: ['404'] }); // of a manifest that is not there yet
  await tab.type('#model', 'org/large');
  await tab.keyboard.press('Enter');
  await seen(tab, '#plan-title');
  await idle(tab);
  const before = asked.length;
  await press(tab, 'start'); // which signs in first
  await tab.waitForSelector('#yes');
  want(tab.url().startsWith(hub + '/oauth/authorize?'), `signs in at ${tab.url()}`);
  await Promise.all([tab.waitForNavigation(), tab.click('#yes')]);
  await says(tab, '#who', /ann/);
  await seen(tab, '#start');
  want(tab.url() === site + '/?model=org%2Flarge', `after the sign-in the address is ${tab.url()}`);
  want(await tab.evaluate(() => document.activeElement.id) === 'start', 'after the sign-in the button has not the focus');
  want(!asked.slice(before).some(a => /\/resolve\/|\/api\/models\/org/.test(a.url)), `the sign-in costs a plan: ${asked.slice(before).map(a => a.url)}`);
  await secretive(tab, 'after the sign-in');
  await fetch(world.back + '/_test/hold', { method: 'POST' });
  await press(tab, 'start');
  await tab.waitForFunction(() => document.getElementById('bar').hasAttribute('value'), { timeout: 120_000 });
  want(/[?&]job=/.test(tab.url()), `the address does not name the job: ${tab.url()}`);
  await lookAround(tab, 'running');
  await tab.click('#cancel');
  await says(tab, '#run-title', /Canceled/, 120_000);
  await tab.click('#start');
  await says(tab, '#run-title', /Published: ann\/large-DF11/, 240_000);
  want(/ weights were compared .* 0 differ/.test(await text(tab, '#run-why')), await text(tab, '#run-why'));
  want(await tab.evaluate(() => document.activeElement.id) === 'run-title', 'the outcome has not the focus');
  want(!/job=/.test(tab.url()), 'the address names a job that has ended');
  await secretive(tab, 'after the conversion');
  await lookAround(tab, 'published');
  const verified = own(['verify', 'ann/large-DF11', '--against', 'org/large', '--level', 'full', '--quiet'], { HF_ENDPOINT: inside, HF_TOKEN: 'hf_oauth_of_ann' });
  want(verified.status === 0, `what was published: ${verified.stdout}${verified.stderr}`);
  await close(tab);
}

// inFirefox goes the straight road once more, up to the button.
async function inFirefox() {
  if (!firefox) return;
  const fox = await launch({ browser: 'firefox', executablePath: firefox });
  const tab = await fox.newPage();
  tab.on('pageerror', error => want(false, `Firefox: ${error.message}`));
  await tab.goto(site + '/?model=org/large');
  await seen(tab, '#plan-title', 120_000);
  await idle(tab);
  await agree(tab);
  await says(tab, '#who', /ann/);
  await seen(tab, '#start');
  await tab.click('#start');
  await says(tab, '#run-title', /Published: ann\/large-DF11/, 240_000);
  await fox.close();
}

// --- all ---

const made = own(['org/llama', '--push', '--repo-id', 'ann/good-DF11', '--quiet'], { HF_ENDPOINT: inside, HF_TOKEN: 'hf_oauth_of_ann', HOME: data });
if (made.status !== 0) throw new Error(made.stderr);
await fetch(world.back + '/_test/damage', { method: 'POST' });
const forged = await (await fetch(world.back + '/_test/forge', { method: 'POST' })).json();
const only = process.env.CASES, kept = await planned();
const tools = { open, close, kept, text, seen, says, idle, agree, own, look, forged, want, asked, site, hub, inside, browser, listen, play, commit: JSON.parse(await (await fetch(world.back + '/api/models/org/llama')).text()).sha };
for (const [name, test] of [...Object.entries({ equality, looks, road, inFirefox }), ...cases]) {
  if (only && !only.split(',').some(part => name.includes(part))) continue;
  const began = Date.now();
  play();
  const one = (ok, what) => want(ok, `${name}: ${what}`);
  await test({ ...tools, want: one }).catch(error => want(false, `${name}: ${error.message.split('\n')[0]} ${error.stack.match(/(check|cases)\.mjs:\d+/)?.[0]}`));
  console.log(`${name}: ${((Date.now() - began) / 1000).toFixed(1)} s`);
}
if (!only) for (const wrong of await (await fetch(world.back + '/_test/wrong')).json() ?? []) want(false, wrong);
await browser.close();
world.end();
if (faults.length) process.exit(1);
console.log(`the page: ${layouts.length} repos planned as by the program; ${cases.length} cases; signed in, converted, canceled, resumed, published, checked`);
process.exit(0);
