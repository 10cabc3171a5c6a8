// Makes the drawings of the page interactive as they come into view. Without this script they stay as drawn.
const specs = JSON.parse(document.getElementById('specs').textContent);
const views = new Map();

async function enliven(box) {
  const { mode, spec } = specs[box.dataset.figure];
  const width = Math.max(280, Math.min(box.clientWidth, spec.width));
  const drawn = views.get(box);
  if (drawn && drawn.width === width) return;
  views.set(box, { width });
  const fresh = document.createElement('div');
  const result = await window.vegaEmbed(fresh, { ...spec, width }, {
    mode, renderer: 'svg', actions: false, ast: true, defaultStyle: false, logLevel: 1,
    tooltip: { disableDefaultStyle: true, theme: 'page' },
  });
  if (drawn && drawn.result) drawn.result.finalize();
  views.set(box, { width, result });
  box.replaceChildren(fresh);
}

const boxes = document.querySelectorAll('[data-figure]');
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) enliven(entry.target).catch((error) => console.error(error));
  }
}, { rootMargin: '200px' });
boxes.forEach((box) => seen.observe(box));

let waiting = 0;
window.addEventListener('resize', () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    for (const box of views.keys()) enliven(box).catch((error) => console.error(error));
  }, 200);
});

// A printed page shows what is folded away on a screen.
let folded = [];
window.addEventListener('beforeprint', () => {
  folded = [...document.querySelectorAll('details.section:not([open])')];
  folded.forEach((details) => { details.open = true; });
});
window.addEventListener('afterprint', () => folded.forEach((details) => { details.open = false; }));
