const NEAR_PX = 40;

/** Keeps the end in sight while the reader is there, and leaves a reader who has scrolled up alone. @returns goes to the end */
export function stickToBottom(box, content) {
  let isAtBottom = true;
  let top = 0;
  const follow = () => {
    if (isAtBottom) box.scrollTop = box.scrollHeight;
  };
  box.addEventListener('scroll', () => {
    const isNear = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
    // Only readers go up. That the end is far may be news which came since this event.
    if (isNear || box.scrollTop < top) isAtBottom = isNear;
    top = box.scrollTop;
  });
  const sizes = new ResizeObserver(follow);
  sizes.observe(box);
  sizes.observe(content);
  return () => {
    isAtBottom = true;
    follow();
  };
}
