// Prints the table of deploy/hf-jobs/README.md, by the function with which the page says what a job takes: node prices.mjs
import { dollars, machines, quote, span } from '../../../page/job.js';

const [small, large] = machines;
for (const [model, down, up] of [['8B', 16.4e9, 11.2e9], ['32B', 65.5e9, 44.6e9], ['70B', 141e9, 96e9], ['405B', 812e9, 553e9]]) {
  const q = quote(large, { download_bytes: down, upload_bytes: up }), s = quote(small, { download_bytes: down, upload_bytes: up });
  console.log(`| ${model} | ${Math.round((down + up) / 1e9)} GB | ${span(q.seconds)} | ${dollars(q.cost)} | ${q.timeout / 60}m | ${dollars(q.most)} | ${span(s.seconds)}, ${dollars(s.cost)} |`);
}
