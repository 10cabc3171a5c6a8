
/**
 * Prints nanoseconds per call: the fastest pass without its GC pause, plus the mean GC pause.
 * A burst on the machine cannot move it, and the collector cannot hide. `loop(from, to)` makes the calls.
 */
async function time({ warmup, calls, passes, loop, restore = () => {} }) {
  const pauses = [];
  const observer = new PerformanceObserver((list) => pauses.push(...list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  let next = 0;
  const pass = async (count) => {
    await restore();
    await new Promise((resolve) => setTimeout(resolve, 5));
    const start = performance.now();
    await loop(next, (next += count));
    return { start, end: performance.now() };
  };
  for (let part = 0; part < 4; part++) await pass(Math.ceil(warmup / 4));
  const spans = [];
  for (let k = 0; k < passes; k++) spans.push(await pass(calls));
  await new Promise((resolve) => setTimeout(resolve, 50)); // entries of the collector arrive late
  observer.disconnect();
  const collecting = spans.map(({ start, end }) => {
    const own = pauses.filter((pause) => pause.startTime >= start && pause.startTime < end);
    return own.reduce((total, pause) => total + pause.duration, 0);
  });
  const fastest = Math.min(...spans.map(({ start, end }, k) => end - start - collecting[k]));
  const pause = collecting.reduce((total, ms) => total + ms, 0) / passes;
  const perCall = (ms) => (ms / calls) * 1e6;
  console.log(JSON.stringify({ node: process.version, ns_per_call: perCall(fastest + pause), gc_ns_per_call: perCall(pause) }));
}
