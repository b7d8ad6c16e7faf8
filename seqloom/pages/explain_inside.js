// Inside the layers: attention, memory, gradients, and attention number by number.
"use strict";
(() => {
  const { views } = Loom;
  views.other = (side, name) => Loom.facts(side.views[name].facts);
})();
