// Telling the kernel what was set once the hand rests; a view that goes before, as when a notebook scrolls, still tells.
function makeTeller(model, rest, signal) {
  let waiting = 0;
  const tell = () => {
    clearTimeout(waiting);
    if (waiting) model.save_changes();
    waiting = 0;
  };
  signal.addEventListener("abort", tell);
  return () => {
    clearTimeout(waiting);
    waiting = setTimeout(tell, rest);
  };
}
