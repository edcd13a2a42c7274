const NEAR_PX = 40;

/** Keeps the end visible while the reader is there, and does not move a reader who has scrolled up. @returns a function that scrolls to the end */
export function stickToBottom(box, content) {
  let isAtBottom = true;
  let top = 0;
  const follow = () => {
    if (isAtBottom) box.scrollTop = box.scrollHeight;
  };
  box.addEventListener('scroll', () => {
    const isNear = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
    // The end can be distant because content arrived after this event, so leave it only when the reader has scrolled up.
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
