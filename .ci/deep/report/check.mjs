// Opens a report in headless Chromium and fails on console messages, on requests, on what hangs over the page's edge, and on what
// axe finds.
//
//   node check.mjs CHROMIUM report.html PAGE.html… checks; the first has a picture
//   SCREENSHOTS=FOLDER node check.mjs …            and takes pictures
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import puppeteer from 'puppeteer-core';

const [chromium, ...pages] = process.argv.slice(2);
const pictures = process.env.SCREENSHOTS;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const faults = [];
const browser = await puppeteer.launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
const tab = await browser.newPage();
let name;
tab.on('console', m => faults.push(`${name}: console: ${m.text()}`));
tab.on('request', r => { if (!/^(file|data):/.test(r.url())) faults.push(`${name}: asked for ${r.url()}`); });
const cdp = await tab.createCDPSession();
for (const page of pages) for (const [width, scheme, forced = 'none', media = 'screen'] of [[1280, 'light'], [1280, 'dark'], [768, 'light'], [360, 'light'], [360, 'dark'], [360, 'dark', 'active'], [1280, 'light', 'active'], [720, 'light', 'none', 'print']]) {
  name = `${basename(page, '.html')}-${width}-${scheme}${forced === 'active' ? '-forced' : ''}${media === 'print' ? '-print' : ''}`;
  await tab.setViewport({ width, height: 900 });
  await cdp.send('Emulation.setEmulatedMedia', { media, features: [{ name: 'forced-colors', value: forced }, { name: 'prefers-color-scheme', value: scheme }] });
  await tab.goto(pathToFileURL(page));
  const over = await tab.$$eval('main *, header *, footer', all => all.filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 90)));
  if (over.length) faults.push(`${name}: hangs over the right edge: ${over.slice(0, 3).join(' | ')}`);
  const bars = await tab.$$eval('.bars rect', all => all.filter(e => e.getBoundingClientRect().width > 1 && getComputedStyle(e).fill !== getComputedStyle(document.body).backgroundColor).length);
  if (page === pages[0] && bars < 4) faults.push(`${name}: the picture shows ${bars} bars`);
  if (pictures) await tab.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
  await tab.evaluate(axe); // a debugger's script, which the page's policy does not stop
  const { violations } = await tab.evaluate(() => window.axe.run());
  for (const v of violations) faults.push(`${name}: axe: ${v.id}: ${v.nodes.map(n => n.html.slice(0, 120)).join(' | ')}`);
}
await browser.close();
faults.forEach(f => console.error(f));
if (faults.length) process.exit(1);
console.log('nothing on the console, nothing over the edge from 360 to 1280 pixels, nothing that axe finds');
