// Gives another value in every process: its checksum must differ.
export const setup = () => ({ secret: `${process.pid}.${process.hrtime.bigint()}` });
export const run = (state, i) => `${state.secret}.${i}`;
