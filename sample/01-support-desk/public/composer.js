const form = document.getElementById('composer');
const message = document.getElementById('message');
const stop = document.getElementById('stop');
const suggestions = document.getElementById('suggestions');

/** @param onSend receives the message; onStop ends the running answer */
export function listen({ onSend, onStop }) {
  const send = (text) => {
    if (text.trim() !== '') onSend(text);
  };

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    send(message.value);
    message.value = '';
    message.focus();
  });

  message.addEventListener('keydown', (event) => {
    // Enter also confirms a word in Chinese or Japanese input.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });

  suggestions.addEventListener('click', ({ target }) => {
    if (target instanceof HTMLButtonElement) send(target.textContent);
  });

  stop.addEventListener('click', onStop);
  document.addEventListener('keydown', ({ key, isComposing }) => {
    // Escape also discards that word.
    if (key === 'Escape' && !isComposing && !stop.hidden) onStop();
  });
}

/** Moves the focus to the input. @param text is inserted before the draft */
export function write(text = '') {
  message.value = [text, message.value].filter((part) => part !== '').join('\n');
  message.focus();
}

/** Shows the stop button while an answer runs. When it disappears with the focus, the focus moves to the input. */
export function offerStop(isOffered) {
  if (stop.hidden === !isOffered) return;
  if (document.activeElement === stop) message.focus();
  stop.hidden = !isOffered;
}
