/** Runs a function repeatedly, with a pause in between. @returns a function that ends the current or next pause early */
export function repeat(work, pauseMs) {
  let isDue;
  let wake = () => {};
  const run = async () => {
    for (;;) {
      isDue = false;
      await work();
      if (isDue) continue;
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, pauseMs);
      });
    }
  };
  void run();
  return () => {
    isDue = true;
    wake();
  };
}
