/** Does something again and again, with a pause between. @returns cuts the pause that is, or the one that would be next */
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
