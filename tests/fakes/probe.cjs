// Stands in for a probe addon: a clock that only moves when it is read, and a core that counts.
let reads = 0;
exports.threadTimes = (target) => {
  reads += 1;
  target[0] = 1000 * reads;
  target[1] = 10 * reads;
};
exports.counted = () => 'core';
