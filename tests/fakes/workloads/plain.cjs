// CommonJS, with its functions on module.exports.
'use strict';

module.exports = { setup: () => [], run: (state, i) => state.length + i };
