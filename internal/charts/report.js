// Read-outs with one cursor for all plots of an axis, and sorting. All data is in the page; nothing is loaded.
'use strict';
(() => {
  const texts = JSON.parse(document.getElementById('readouts').textContent);
  const bar = document.getElementById('read');
  const plots = [...document.querySelectorAll('.plot')];
  const rows = [...document.querySelectorAll('tr[data-u]')];

  for (const plot of plots) {
    const line = plot.appendChild(document.createElement('i'));
    line.className = 'cursor';
    line.hidden = true;
  }

  // show puts the cursor at a slot of an axis, 'e' or 'u', and reads it out; without a text there it hides both.
  function show(axis, slot) {
    const text = texts[axis]?.[slot] ?? '';
    for (const plot of plots) {
      const line = plot.querySelector('.cursor'), { x, slots } = plot.dataset;
      line.hidden = !text || x !== axis;
      line.style.left = 100 * slot / slots + '%';
      line.style.width = 100 / slots + '%';
    }
    for (const row of rows) row.classList.toggle('on', !!text && axis === 'u' && +row.dataset.u === slot);
    bar.textContent = text;
    bar.hidden = !text;
  }
  const hide = () => show('', -1);

  for (const plot of plots) {
    const axis = plot.dataset.x, n = +plot.dataset.slots;
    let at = -1;
    const pick = slot => show(axis, at = Math.max(0, Math.min(n - 1, slot)));
    const point = event => {
      const r = plot.getBoundingClientRect();
      pick(Math.floor((event.clientX - r.left) / r.width * n));
    };
    plot.addEventListener('pointermove', point);
    plot.addEventListener('pointerdown', point);
    plot.addEventListener('pointerleave', event => { if (event.pointerType === 'mouse') hide(); });
    plot.addEventListener('keydown', event => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      let slot = at + step;
      while (slot > 0 && slot < n - 1 && !texts[axis][slot]) slot += step;
      pick(slot);
    });
    plot.addEventListener('blur', event => { if (!event.relatedTarget?.closest('.plot')) hide(); });
  }
  document.addEventListener('keydown', event => { if (event.key === 'Escape') hide(); });
  document.addEventListener('pointerdown', event => { if (!event.target.closest('.plot')) hide(); });
  for (const row of rows) {
    row.addEventListener('pointerenter', () => show('u', +row.dataset.u));
    row.addEventListener('pointerleave', hide);
  }

  // On a phone the long table is folded.
  if (matchMedia('(max-width:600px)').matches) for (const table of document.querySelectorAll('details')) table.open = false;

  // Sorting: a heading sorts its table, a second click turns the order around.
  const value = (row, i) => {
    const text = row.cells[i]?.textContent ?? '', number = parseFloat(text.replace(/[^\d.-]/g, ''));
    return i === 0 || isNaN(number) ? text : number;
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
})();
