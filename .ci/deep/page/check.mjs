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

const layouts = ['llama', 'shards', 'scattered', 'tied', 'stored', 'qwen2', 'qwen3', 'large', 'unknown', 'diffusers', 'single', 'hostile',
  'f16', 'f32', 'gguf', 'pickle', 'adapter', 'empty', 'gated', 'nothing-there'];
const plans = await open();
let fine = 0;
for (const name of layouts) fine += (await planned(plans, 'org/' + name)).ok;
want(fine >= 8, `only ${fine} of the layouts can be converted`);
await planned(plans, 'no id');
await planned(plans, '-o');
await planned(plans, hub + '/org/llama/tree/main');
await close(plans);

// --- what is shown ---

if (process.env.ONLY !== 'plan') for (const [view, width, scheme] of [['desktop-light', 1100, 'light'], ['desktop-dark', 1100, 'dark'], ['phone-light', 390, 'light'], ['phone-dark', 390, 'dark']]) {
  for (const [name, id] of [['large', 'plan'], ['hostile', 'plan'], ['f16', 'refused']]) {
    const tab = await open('/?model=org/' + name, width, scheme);
    if (name === 'f16') tab.expected.push('404');
    await shown(id)(tab);
    await look(tab, `${name}-${view}`);
    await close(tab);
  }
}

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

// --- the end ---

for (const wrong of await (await fetch(site + '/_test/wrong')).json() ?? []) faults.push(wrong);
await browser.close();
serving.kill();
faults.forEach(fault => console.error(fault));
if (faults.length) process.exit(1);
console.log(`the page: ${layouts.length} repos planned as the program does`);
