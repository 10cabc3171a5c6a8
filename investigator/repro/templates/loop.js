
let sink;
function loop(from, to) {
  for (let i = from; i < to; i++) sink = run(i);
}
