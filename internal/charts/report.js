// Read-outs with one cursor for all plots, sorting, and copying. All data is in the page; nothing is loaded.
'use strict';
(() => {
  const parse = id => JSON.parse(document.getElementById(id).textContent);
  const report = parse('data'), texts = parse('readouts');
  const bar = document.getElementById('read');
  const plots = [...document.querySelectorAll('.plot')];
  const marked = [...document.querySelectorAll('tr[data-e],tr[data-u]')];
  const percent = v => (100 * v).toFixed(v < 0.01 ? 3 : 1) + ' %';

  for (const plot of plots) {
    for (const kind of ['cx', 'cy']) {
      const line = plot.appendChild(document.createElement('i'));
      line.className = 'cursor ' + kind;
      line.hidden = true;
    }
  }

  // place shows or hides one cursor line of a plot with n places along it.
  function place(plot, kind, at, n) {
    const line = plot.querySelector('.' + kind), on = at >= 0;
    line.hidden = !on;
    if (!on) return;
    line.style[kind === 'cx' ? 'left' : 'top'] = 100 * at / n + '%';
    line.style[kind === 'cx' ? 'width' : 'height'] = 100 / n + '%';
  }

  // show puts the cursor at an exponent's slot and a unit's slot; -1 is none.
  function show(at, text) {
    for (const plot of plots) {
      const { x, y, slots } = plot.dataset;
      place(plot, 'cx', at[x], +slots);
      if (!y) continue;
      const n = texts.heat.rows.length;
      place(plot, 'cy', at.e >= 0 ? n - 1 - at.e : -1, n);
    }
    for (const row of marked) {
      const { e, u } = row.dataset;
      row.classList.toggle('on', e !== undefined ? +e === at.e : +u === at.u);
    }
    bar.textContent = text;
    bar.hidden = !text;
  }
  const hide = () => show({ e: -1, u: -1 }, '');

  // pick puts the cursor at a place of a plot; row counts for the heat map only.
  function pick(plot, slot, row) {
    const { x, y } = plot.dataset, at = { e: -1, u: -1 };
    let text = texts[x][slot];
    if (!text) return hide();
    at[x] = slot;
    if (y) {
      const { rows, cells } = texts.heat, v = cells[row][slot];
      at.e = rows.length - 1 - row;
      if (rows[row]) text = `${rows[row]}: ${percent(Math.max(0, v))} · ${texts.u[slot]}`;
    }
    plot.slot = slot;
    plot.row = row;
    show(at, text);
  }

  const within = (v, n) => Math.max(0, Math.min(n - 1, Math.floor(v)));
  for (const plot of plots) {
    const n = +plot.dataset.slots, rows = plot.dataset.y ? texts.heat.rows.length : 1;
    const point = event => {
      const r = plot.getBoundingClientRect();
      pick(plot, within((event.clientX - r.left) / r.width * n, n), within((event.clientY - r.top) / r.height * rows, rows));
    };
    plot.addEventListener('pointermove', point);
    plot.addEventListener('pointerdown', point);
    plot.addEventListener('pointerleave', event => { if (event.pointerType === 'mouse') hide(); });
    plot.addEventListener('keydown', event => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!step || (step[1] && rows === 1)) return;
      event.preventDefault();
      let slot = (plot.slot ?? -1) + step[0];
      while (step[0] && slot > 0 && slot < n - 1 && !texts[plot.dataset.x][slot]) slot += step[0];
      pick(plot, within(slot, n), within((plot.row ?? 0) + step[1], rows));
    });
    plot.addEventListener('blur', event => { if (!event.relatedTarget?.closest('.plot')) hide(); });
  }
  document.addEventListener('keydown', event => { if (event.key === 'Escape') hide(); });
  document.addEventListener('pointerdown', event => { if (!event.target.closest('.plot')) hide(); });
  for (const row of marked) {
    const { e, u } = row.dataset;
    row.addEventListener('pointerenter', () => show({ e: +(e ?? -1), u: +(u ?? -1) }, texts[e !== undefined ? 'e' : 'u'][e ?? u]));
    row.addEventListener('pointerleave', hide);
  }

  // Sorting: a heading sorts its table, a second click turns the order around.
  const value = (row, i) => {
    const text = row.cells[i]?.textContent ?? '', number = parseFloat(text.replace(/[^\d.-]/g, ''));
    return i === 0 && !/^[\d.\s]+$/.test(text) || isNaN(number) ? text : number;
  };
  const order = (a, b) => typeof a === 'number' && typeof b === 'number' ? a - b
    : typeof a !== typeof b ? (typeof a === 'number' ? -1 : 1) : a.localeCompare(b, 'en', { numeric: true });
  for (const table of document.querySelectorAll('table.sort')) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    heads.forEach((head, i) => {
      const button = document.createElement('button');
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener('click', () => {
        const down = head.getAttribute('aria-sort') === 'ascending';
        heads.forEach(h => h.removeAttribute('aria-sort'));
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        body.append(...[...body.rows].sort((a, b) => order(value(a, i), value(b, i)) * (down ? -1 : 1)));
      });
    });
  }

  // Copying: the units as CSV, the whole report as JSON.
  const columns = ['path', 'tensors', 'weights', 'entropy', 'code_bits', 'bits', 'bound', 'codes', 'longest_code', 'luts', 'largest_chunk', 'stays_bf16'];
  const cell = v => /[",\n]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v;
  const csv = () => [columns, ...report.units.map(u => columns.map(k => cell(String(k === 'codes' ? u.codes?.length ?? 0 : u[k] ?? ''))))]
    .map(line => line.join(',')).join('\n') + '\n';
  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // no clipboard without a secure context, or not allowed
      const area = document.body.appendChild(document.createElement('textarea'));
      area.value = text;
      area.select();
      const ok = document.execCommand('copy');
      area.remove();
      if (!ok) throw new Error('not allowed');
    }
  }
  for (const tools of document.querySelectorAll('.tools')) {
    for (const [label, make] of [['Copy CSV', csv], ['Copy JSON', () => JSON.stringify(report, null, 2)]]) {
      const button = tools.appendChild(document.createElement('button'));
      button.type = 'button';
      button.textContent = label;
      button.addEventListener('click', async () => {
        button.textContent = await copy(make()).then(() => 'Copied', () => 'Could not copy');
        setTimeout(() => { button.textContent = label; }, 1500);
      });
    }
  }
})();
