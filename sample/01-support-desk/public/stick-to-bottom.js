/** Keeps the end in sight while the reader is there, and leaves a reader who has scrolled up alone. @returns goes to the end */
export function stickToBottom(box, content) {
  const NEAR_PX = 40;
  let isAtBottom = true;
  const follow = () => {
    if (isAtBottom) box.scrollTop = box.scrollHeight;
  };
  box.addEventListener('scroll', () => {
    isAtBottom = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
  });
  const sizes = new ResizeObserver(follow);
  sizes.observe(box);
  sizes.observe(content);
  return () => {
    isAtBottom = true;
    follow();
  };
}
